"""The README's example runs as it stands, and its chips learn."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_ten_line_example(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert len([line for line in code.splitlines() if line.strip()]) <= 13
    found = names["found"]
    assert (found.verdict.accuracy > 0.8).all()
    assert found.passed
    assert "iPC trains on ecram_li" in capsys.readouterr().out
