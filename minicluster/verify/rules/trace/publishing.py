"""Images that nodes publish and snapshots that they write, beside folds of the log."""

from __future__ import annotations

from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.verify.rules.model import Check, Evidence, Rule, View
from minicluster.verify.rules.trace.windows import UP_TO_HERE

_EMPTY = MetadataImage.EMPTY.digest()

_PUBLICATIONS = f"""
select p.*, cast(null as string) as topic, cast(null as int) as part,
  i.hash, i.offset is not null as aligned,
  lag(p.offset) over (partition by p.run, p.node, p.incarnation order by p.seq) as p_offset,
  coalesce(bool_or(p.manifest = 'snapshot' and p.offset > coalesce(p.first_image, 0)) over (
    partition by p.run, p.node, p.incarnation order by p.seq), false) as after_snapshot
from (
  select *, max(hw) over (partition by run order by seq {UP_TO_HERE}) as high_watermark
  from (
    select run, seq, node, incarnation, offset, image_hash, manifest, in_tx, first_image,
      empty_images, cast(null as bigint) as hw
    from publish
    union all
    select run, seq, null, null, null, null, null, null, null, null, offset
    from raft_event where kind = 'hw'
  )
) p
left join images i on p.run = i.run and p.offset = i.offset
where p.node is not null
"""

VIEWS = (View(name="publications", sql=_PUBLICATIONS),)

RULES = (
    Rule(
        id="E32",
        title="Published images are folds of the log",
        statement="The image that a node publishes at an offset is the fold of the committed "
        "log up to that offset.",
        source="KIP-631; MetadataLoader",
        evidence=Evidence.IMAGES,
        tables=("publish",),
        checks=(
            Check(
                view="publications",
                when="hash is not null and image_hash is not null",
                bad="image_hash <> hash",
                message="node {broker} published an image that differs from the fold of the "
                "log (event {number})",
                broker="node",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="E33",
        title="Images are published in order, at committed batch ends",
        statement="Each incarnation publishes images in order, at the end of a committed "
        "batch, never past the high watermark, never inside a metadata transaction, and never an "
        "empty one.",
        source="KAFKA-15389, KAFKA-17713; MetadataLoader.maybePublishMetadata",
        evidence=Evidence.IMAGES,
        tables=("publish", "raft_event"),
        checks=(
            Check(
                view="publications",
                when="true",
                bad="offset < p_offset",
                message="node {broker} published an older image than before (event {number})",
                broker="node",
                number="seq",
            ),
            Check(
                view="publications",
                when="offset >= first_image",
                counts=False,
                bad="not aligned",
                message="node {broker} published at an offset that is not the end of a "
                "committed batch (event {number})",
                broker="node",
                number="seq",
            ),
            Check(
                view="publications",
                when="high_watermark is not null",
                counts=False,
                bad="offset >= high_watermark",
                message="node {broker} published past the high watermark {number}",
                broker="node",
                number="high_watermark",
            ),
            Check(
                view="publications",
                when="true",
                counts=False,
                bad="offset < 0 or in_tx or (aligned and hash is null and offset >= first_image) "
                f"or (coalesce(image_hash = '{_EMPTY}', false) and not empty_images)",
                message="node {broker} published an empty image or one inside a transaction "
                "(event {number})",
                broker="node",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="E35",
        title="A snapshot plus the rest of the log is the whole log",
        statement="A node that has loaded a snapshot publishes the same images as the whole "
        "log gives.",
        source="KIP-630, KAFKA-13357, KAFKA-16892; MetadataLoader.handleLoadSnapshot",
        evidence=Evidence.IMAGES,
        tables=("publish",),
        checks=(
            Check(
                view="publications",
                when="after_snapshot and hash is not null and image_hash is not null",
                bad="image_hash <> hash",
                message="node {broker}, which has loaded a snapshot, published an image that "
                "differs from the fold of the log (event {number})",
                broker="node",
                number="seq",
            ),
        ),
    ),
)
