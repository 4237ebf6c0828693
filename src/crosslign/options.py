"""Types of options: what the annotations of an implementation's arguments say that a file may hold (read by `config/signatures.py`).

`share: Annotated[float, Gt(0), Lt(1)] = 0.15` is an option above 0 and below 1, 0.15 where a file leaves it out; `Literal` lists choices;
`limit: Positive | None = None` is an option that may be left out and has no value then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Len, Lt, MinLen

__all__ = ["Ge", "Gt", "Le", "Len", "Lt", "MinLen"]


class Schema:
    """Keywords of JSON schema for what a type does not say.

    Args:
        keywords: such as `pattern`; `ref` names a definition of `config/schemas/common.yaml`, `part` lists the kinds of a recipe's parts
            of which one is to be named (none: any kind).
    """

    def __init__(self, **keywords: Any) -> None:
        self.keywords = keywords


Natural = Annotated[int, Ge(0)]
Positive = Annotated[int, Ge(1)]
AtLeastTwo = Annotated[int, Ge(2)]
AboveZero = Annotated[float, Gt(0)]
Share = Annotated[float, Ge(0), Le(1)]
Texts = Annotated[Sequence[str], MinLen(1)]
Character = Annotated[str, Len(1, 1)]
Id = Annotated[str, Schema(ref="id")]
Ids = Annotated[Sequence[Id], MinLen(1)]
Lang = Annotated[str, Schema(ref="lang")]
Langs = Annotated[Sequence[str], Schema(ref="langs")]
LangPair = Annotated[str, Schema(pattern="^[a-z]{2,3}-[a-z]{2,3}$")]
LangPairs = Annotated[Sequence[LangPair], MinLen(1)]
ViewKind = Literal["full", "partial", "code_switch"]
Pooling = Literal["cls", "cls_before_mlp", "mean", "mean_no_special", "max", "last", "avg_first_last", "pooler"]
Layer = Annotated[int, Ge(-1)]
AnyPart = Annotated[str, Schema(part=[])]
