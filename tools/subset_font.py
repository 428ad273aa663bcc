"""Make the Chinese font of the figures: `python tools/subset_font.py NotoSansSC-Regular.ttf`.

The whole font is that of the pip package zhplot 1.0.0 (`pip download --no-deps zhplot==1.0.0`, then unzip it; the files are
in `zhplot/fonts`): Noto Sans SC Regular, static, under the SIL Open Font License 1.1. It has 10.6 MB. What is kept are the
3,755 characters of the first level of GB 2312, which are those of nearly all modern text in simplified Chinese, and the
punctuation that goes with them. The result is another font under another name, so that it is never confused with one that
a machine has, and under the same licence, as that asks.
"""

import argparse
import hashlib
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

FOLDER = Path(__file__).resolve().parent.parent / "attnlib" / "plots" / "font_files"
TARGET = FOLDER / "AttnlibSansSC-Regular.ttf"
FAMILY = "Attnlib Sans SC"
WHOLE = "5cf8b2a0576d5680284ab03a7a8219499d59bbe981a79bb3dc0031f251c39736"  # of the whole font
PUNCTUATION = "　、。〈〉《》「」『』【】〔〕〖〗·…—～“”‘’！＂＃％＆＇（）＊＋，－．／：；＜＝＞？＠［＼］＾＿｛｜｝￥"


def characters() -> str:
    """What the font is to know: the first level of GB 2312, punctuation, and full-width letters and digits."""
    codes = [(row, cell) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF) if (row, cell) <= (0xD7, 0xF9)]
    first_level = "".join(bytes(code).decode("gb2312") for code in codes)
    full_width = "".join(chr(ord(char) + 0xFEE0) for char in map(chr, range(ord("0"), ord("z") + 1)) if char.isalnum())
    return first_level + PUNCTUATION + full_width


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("whole", type=Path, help="NotoSansSC-Regular.ttf; OFL.txt beside it is copied too")
    whole = parser.parse_args().whole
    found = hashlib.sha256(whole.read_bytes()).hexdigest()
    if found != WHOLE:
        raise SystemExit(
            f"5cf8b2a0576d5680284ab03a7a8219499d59bbe981a79bb3dc0031f251c39736 is another font: its SHA-256 is {found}, expected {WHOLE}."
        )
    options = subset.Options(hinting=False, layout_features=[], name_IDs=["*"], notdef_outline=True)
    options.drop_tables += ["vhea", "vmtx", "GSUB", "GPOS", "GDEF", "BASE", "STAT"]
    font = TTFont(whole, recalcTimestamp=False)  # the same bytes each time
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=characters())
    subsetter.subset(font)
    for record in list(font["name"].names):
        names = {
            1: FAMILY,
            3: f"{FAMILY} Regular, a part of Noto Sans SC",
            4: f"{FAMILY} Regular",
            6: "AttnlibSansSC-Regular",
            25: "AttnlibSansSC",
        }
        if record.nameID in (16, 17, 21, 22):
            font["name"].removeNames(nameID=record.nameID)
        elif record.nameID in names:
            record.string = names[record.nameID]
    font.save(TARGET)
    (FOLDER / "OFL.txt").write_text(
        (whole.parent / "OFL.txt").read_text(encoding="utf-8"), encoding="utf-8", newline="\n"
    )
    print(f"{TARGET.name}: {len(set(characters()))} characters, {TARGET.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
