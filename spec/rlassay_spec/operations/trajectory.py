"""Which tokens of a conversation the policy itself has sampled."""

from rlassay_spec.shapes import TokenIds, TokenMask


def response_mask(token_ids: TokenIds, im_start: int, im_end: int, assistant: int, newline: int) -> TokenMask:
    """1 on what the assistant turns contain and on the im_end that closes them, 0 elsewhere.

    turn = im_start, role, newline, content…, im_end;  out = 1 on content… and im_end where role = assistant

    Source: rl-basics §6, the implementation's mask (claim B6.5).

    Special cases: 0 on every header (im_start, role, newline), on turns of other roles, and on what lies before,
    between and after turns. im_start always opens a turn and ends an unfinished one; im_start itself is 0. An im_end
    outside a turn is 0. The role and newline ids are ordinary content inside the content. Padding is every trailing
    id < 0; an unfinished assistant turn counts up to the last token before it. An id < 0 that is not trailing is not
    padding.

    Shapes: token_ids [B, L] → bool [B, L]. Entry t belongs to token t itself; mask[:, 1:] fits [B, L−1] log-probs.

    Free: a turn whose header is not im_start, role, newline, with one token each.

    Raises:
        ValueError: token_ids is not [B, L].
    """
    raise NotImplementedError
