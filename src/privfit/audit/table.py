"""The result of an audit: one line per estimator, setting and attack."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

HEAD = ("mechanism", "setting", "attack", "claimed", "found", "runs", "verdict")


@dataclass(frozen=True)
class Finding:
    """What one attack found.

    `found` is the strongest lower bound on epsilon, or the largest loss, in the units of `claimed`; None where the
    attack compares what is seen and measures nothing.
    """

    mechanism: str
    setting: str
    attack: str
    claimed: float | None
    found: float | None
    runs: int
    verdict: str
    detail: str = ""

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.verdict == "violated"

    def cells(self) -> tuple[str, ...]:
        """The line as texts."""
        numbers = ("" if value is None else f"{value:.4g}" for value in (self.claimed, self.found))
        return (self.mechanism, self.setting, self.attack, *numbers, str(self.runs), self.verdict)


@dataclass(frozen=True)
class AuditResult:
    """All that an audit found.

    Parameters
    ----------
    findings : tuple of Finding
        One line per estimator, setting and attack.
    """

    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> AuditResult:
        """Collect lines."""
        return cls(tuple(findings))

    @property
    def violated(self) -> bool:
        """Whether any claim is refuted."""
        return any(finding.violated for finding in self.findings)

    def to_dict(self) -> dict[str, object]:
        """The result as plain values."""
        return {"violated": self.violated, "findings": [asdict(finding) for finding in self.findings]}

    def __str__(self) -> str:
        lines = [HEAD, *(finding.cells() for finding in self.findings)]
        widths = [max(len(line[place]) for line in lines) for place in range(len(HEAD))]
        told = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        told += [
            f"  {one.mechanism} ({one.setting}), {one.attack}: {one.detail}" for one in self.findings if one.violated
        ]
        return "\n".join(told)
