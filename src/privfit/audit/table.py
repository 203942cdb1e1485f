"""The result of an audit: one line per mechanism, setting and attack."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from privfit.report.audit import draw_audit
from privfit.report.notebook import fragment, paragraph, table

HEAD = ("mechanism", "setting", "claimed", "found", "by", "runs", "attacks", "verdict")


@dataclass(frozen=True)
class Finding:
    """What one attack found.

    Parameters
    ----------
    mechanism : str
        The estimator, publisher or function that was attacked.
    setting : str
        Its mechanism and other settings, in words.
    attack : str
        The attack.
    claimed : float or None
        The epsilon that is claimed, or None where the attack compares what is seen.
    found : float or None
        The strongest lower bound on epsilon, or the largest loss, in the units of `claimed`; None where nothing is
        measured.
    runs : int
        Number of runs.
    verdict : str
        "holds" or "violated".
    detail : str, default=''
        What was seen, in words.

    See Also
    --------
    AuditResult : All that an audit found.

    Examples
    --------
    >>> import privfit as pf
    >>> found = pf.audit.Finding("LinearRegression", "functional", "replay", 1.0, 0.5, 100, "holds")
    >>> found.share, found.violated
    (0.5, False)
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

    @property
    def share(self) -> float:
        """The loss that was found as a share of the claim."""
        return self.found / self.claimed if self.found is not None and self.claimed else 0.0


@dataclass(frozen=True)
class AuditResult:
    """All that an audit found.

    Parameters
    ----------
    findings : tuple of Finding
        One line per mechanism, setting and attack.

    See Also
    --------
    mechanisms : Makes one.

    Examples
    --------
    >>> import privfit as pf
    >>> line = pf.audit.Finding("LinearRegression", "functional", "replay", 1.0, 0.5, 100, "holds")
    >>> print(pf.audit.AuditResult((line,)))
    mechanism         setting     claimed  found  by      runs  attacks  verdict
    LinearRegression  functional  1        0.5    replay  100   1        holds
    """

    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> AuditResult:
        """Collect lines.

        Parameters
        ----------
        findings : iterable of Finding
            The lines.

        Returns
        -------
        AuditResult
            All of them.
        """
        return cls(tuple(findings))

    @property
    def violated(self) -> bool:
        """Whether any claim is refuted."""
        return any(finding.violated for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values.

        Returns
        -------
        dict
            Whether anything is violated, and the findings.
        """
        return {"violated": self.violated, "findings": [asdict(finding) for finding in self.findings]}

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw what every attack found as a share of the claim; needs matplotlib.

        Parameters
        ----------
        path : str, Path or None, default=None
            A file to write the drawing to.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        return draw_audit(self.to_dict(), path)

    def cells(self) -> list[tuple[str, ...]]:
        """Return a line per mechanism and setting as texts: the strongest attack, and all runs.

        Returns
        -------
        list of tuple of str
            The lines of the table that is printed.
        """
        groups: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault((finding.mechanism, finding.setting), []).append(finding)
        return [(*key, *_strongest(own)) for key, own in groups.items()]

    def _repr_html_(self) -> str:
        told = [paragraph(one) for one in self._violations()]
        return fragment(table("What attacks found", HEAD, self.cells()), *told)

    def _violations(self) -> list[str]:
        return [f"{one.mechanism} ({one.setting}), {one.attack}: {one.detail}" for one in self.findings if one.violated]

    def __str__(self) -> str:
        lines = [HEAD, *self.cells()]
        widths = [max(len(line[place]) for line in lines) for place in range(len(HEAD))]
        told = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([*told, *(f"  {one}" for one in self._violations())])


def _strongest(own: list[Finding]) -> tuple[str, ...]:
    """What several attacks on one case found together."""
    best = max(own, key=lambda one: one.share)
    numbers = ("", "", "") if best.found is None else (f"{best.claimed:.4g}", f"{best.found:.4g}", best.attack)
    verdict = "violated" if any(one.violated for one in own) else "holds"
    return (*numbers, str(sum(one.runs for one in own)), str(len(own)), verdict)
