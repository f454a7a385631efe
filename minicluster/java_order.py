"""The order in which a java.util.HashSet of broker ids is walked, where it shows in records."""

from __future__ import annotations

from collections.abc import Sequence


def java_set_order(first: Sequence[int], then: Sequence[int] = ()) -> list[int]:
    """The members of a set that is made from some ids and gets the others afterwards.

    Ids stand in the slot of their lowest bits, in one slot in the order of arrival. There are 16
    slots at least and twice as many whenever three quarters are exceeded; a set made from a
    collection starts with room for it. So few ids below 16 ascend, and 16 comes before 1.
    """
    slots = 16
    while slots < len(first) * 4 // 3 + 1:
        slots *= 2
    members = dict.fromkeys((*first, *then))
    while len(members) > slots * 3 // 4:
        slots *= 2
    return sorted(members, key=lambda member: (member ^ member >> 16) & (slots - 1))
