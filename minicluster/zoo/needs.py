"""The needs of faults in a drawn scenario: kinds of disturbances, clients, a shape.

A fault that is not named here acts in most scenarios. The kinds are those of
``minicluster.scenario.nemesis`` and ``minicluster.zookeeper.nemesis``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from minicluster.scenario.nemesis.draws import NO, YES, Needs

_QUICK = {"short timeouts": YES}
_CLIENTS = {**_QUICK, "clients": YES}
_COMMITTED = {**_CLIENTS, "clients/isolation": YES}
_ELR = {**_QUICK, "elr off": NO}
_THREE = {**_QUICK, "controllers": 0.5}
_DYNAMIC = {**_THREE, "dynamic": YES}
_DIRECTORIES = {**_QUICK, "log dirs": YES}
_USERS = {**_QUICK, "users": YES}
_SNAPSHOTS = {**_QUICK, "snapshots": YES, "retention": YES}


def _needs(*kinds: str, fixed: Mapping[str, float] = _QUICK) -> Needs:
    return Needs(kinds=kinds, fixed=fixed)


NEEDS: Mapping[str, Needs] = {
    "S05": _needs("leads in the dark", "leads again unseen", "requests again"),
    "S06": _needs("leads in the dark", "leads again unseen"),
    "S09": _needs("members fall", fixed={**_QUICK, "elr off": YES}),
    "S11": _needs("members fall", "swizzle"),
    "S13": _needs("leads again", "leads with less"),
    "S19": _needs("members fall", fixed={**_QUICK, "elr off": YES}),
    "S31": _needs(fixed=_CLIENTS),
    "S33": _needs("directories fail", fixed=_DIRECTORIES),
    "S34": _needs(fixed={**_CLIENTS, "answers": YES}),
    "S41": _needs(fixed=_COMMITTED),
    "S42": _needs(fixed=_COMMITTED),
    "S43": _needs(fixed=_COMMITTED),
    "S45": _needs(fixed=_CLIENTS),
    "S46": _needs(fixed=_CLIENTS),
    "S47": _needs("fences another", fixed=_CLIENTS),
    "S48": _needs("reads all again", fixed=_COMMITTED),
    "S49": _needs("reads all again", fixed=_CLIENTS),
    "S51": _needs(fixed=_CLIENTS),
    "S52": _needs(fixed={**_CLIENTS, "clients/members": NO}),
    "S54": _needs(fixed={**_CLIENTS, "clients/transforms": YES}),
    "S57": _needs("shut down"),
    "S70": _needs("reassign"),
    "S74": _needs("empty while fenced", "made anew while away"),
    "S80": _needs(fixed=_USERS),
    "S81": _needs(fixed=_USERS),
    "S82": _needs(fixed={**_USERS, "users/alice": NO, "users/bob": NO}),
    "Z01": _needs("fenced and fetching"),
    "Z03": _needs("restarted while proposed"),
    "Z04": _needs("empty while fenced"),
    "Z07": _needs("members fall", "eligible replicas", fixed=_ELR),
    "Z14": _needs("directories fail", fixed=_DIRECTORIES),
    "Z15": _needs("ISR before its metadata"),
    "Z17": _needs("ISR before its metadata"),
    "Z18": _needs("members fall", "swizzle"),
    "Z23": _needs("topic", "changed while away"),
    "Z25": _needs("changed while away", fixed={**_CLIENTS, **_SNAPSHOTS}),
    "Z32": _needs("restarts at once"),
    "Z34": _needs("receives and cannot send", "isolate", fixed=_THREE),
    "Z36": _needs("elections without fetches"),
    "Z41": _needs("reassign"),
    "Z43": _needs("changed while away", fixed=_SNAPSHOTS),
    "Z48": _needs("leads with less", "elections in a row", fixed=_CLIENTS),
    "Z52": _needs("eligible replicas", fixed=_ELR),
    "Z53": _needs("eligible replicas", fixed=_ELR),
    "Z54": _needs("eligible replicas", fixed=_ELR),
    "Z55": _needs("eligible replicas", fixed=_ELR),
    "Z56": _needs("reassign", "eligible replicas", fixed=_ELR),
    "Z57": _needs("late acknowledgement", fixed=_DYNAMIC),
    "Z58": _needs("epoch without commit", fixed={**_THREE, **_SNAPSHOTS}),
    "Z59": _needs("receives and cannot send", fixed=_THREE),
    "Z60": _needs("candidates meet", "decides in vain", fixed=_THREE),
    "Z61": _needs("decides in vain", fixed=_DYNAMIC),
}


def needs_of(faults: Iterable[str]) -> Needs:
    """The needs of several faults together; where two contradict each other, the first one's."""
    kinds: dict[str, None] = {}
    fixed: dict[str, float] = {}
    for fault in faults:
        needs = NEEDS.get(fault, Needs())
        kinds |= dict.fromkeys(needs.kinds)
        fixed = {**needs.fixed, **fixed}
    return Needs(kinds=tuple(kinds), fixed=fixed)
