"""Answers on demand: what clients get besides what nodes make of their requests.

    client ──request──▶ Network ──▶ Answers ──▶ node         before: the node never handles it
    client ◀─response── Network ◀── Answers ◀── response     after: it has taken effect

What a node says is in the trace as the node says it, and is judged so; what the client got in its
place stands beside it (``rpc.answer``). So an answer accuses nobody. A response in which some
partitions have an error in place of what the node says is in the trace with these errors.

One answer acts on a request: the one that was given first, of those that cover it.
"""
