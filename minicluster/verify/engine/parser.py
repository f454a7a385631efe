"""A parser of the SQL that rules are written in: the part of Spark's that they need.

Errors of the text are SyntaxErrors of SQL: ``SqlError`` with the place.
"""

from __future__ import annotations

import re

from minicluster.verify.engine import tree as t

_TOKEN = re.compile(
    r"\s+|--[^\n]*|(?P<number>\d+)L?|(?P<text>'(?:[^']|'')*')"
    r"|(?P<word>[A-Za-z_]\w*|`[^`]+`)|(?P<sign><=>|<>|<=|>=|->|!=|[-+*/=<>(),.:\[\]])"
)
_COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=", "<=>")
_AFTER_SOURCE = ("where", "group", "having", "window", "join", "left", "inner", "on", "union")


class SqlError(ValueError):
    """A text is not SQL that the rules' engine reads."""


def parse_query(text: str) -> t.Query:
    """Parse a query.

    Errors:  SqlError.
    """
    parser = _Parser(text)
    query = parser.query()
    parser.end()
    return query


def parse_expression(text: str) -> t.Expression:
    """Parse one expression.

    Errors:  SqlError.
    """
    parser = _Parser(text)
    expression = parser.expression()
    parser.end()
    return expression


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise SqlError(f"SQL: nothing begins with {text[position : position + 20]!r}")
        position = match.end()
        if match.lastgroup is not None:
            found.append((match.lastgroup, match[match.lastgroup]))
    return found


class _Expressions:
    """The grammar of expressions, loosest binding first."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._words = [v.lower() if kind == "word" else v for kind, v in self._tokens]
        self._words += ("", "", "")  # a grammar looks at most so far ahead
        self._at = 0

    # --- tokens -----------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> str:
        return self._words[self._at + ahead]

    def _take(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise SqlError("SQL: the text ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, word: str, *more: str) -> bool:
        at = self._at + 1
        if self._words[at - 1] != word:
            return False
        end = at + len(more)
        if more and tuple(self._words[at:end]) != more:
            return False
        self._at = end
        return True

    def _expect(self, *words: str) -> None:
        if not self._accept(*words):
            here = " ".join(value for _, value in self._tokens[self._at : self._at + 8])
            raise SqlError(f"SQL: {' '.join(words)!r} is missing before {here!r}")

    def _name(self) -> str:
        kind, value = self._take()
        if kind != "word":
            raise SqlError(f"SQL: {value!r} is no name")
        return value.strip("`")

    def end(self) -> None:
        """Nothing may follow.

        Errors:  SqlError.
        """
        if self._at < len(self._tokens):
            raise SqlError(f"SQL: {self._peek()!r} follows the end")

    # --- operators --------------------------------------------------------------------------

    def expression(self) -> t.Expression:
        """An expression of any kind."""
        left = self._conjunction()
        while self._accept("or"):
            left = t.Call("or", (left, self._conjunction()))
        return left

    def _conjunction(self) -> t.Expression:
        left = self._negation()
        while self._accept("and"):
            left = t.Call("and", (left, self._negation()))
        return left

    def _negation(self) -> t.Expression:
        if self._accept("not"):
            return t.Call("not", (self._negation(),))
        return self._comparison()

    def _comparison(self) -> t.Expression:
        left = self._sum()
        while True:
            if self._peek() in _COMPARISONS:
                sign = self._take()[1]
                left = t.Call("<>" if sign == "!=" else sign, (left, self._sum()))
            elif self._accept("is", "null"):
                left = t.Call("is null", (left,))
            elif self._accept("is", "not", "null"):
                left = t.Call("not", (t.Call("is null", (left,)),))
            elif self._accept("not", "in"):
                left = t.Call("not", (self._among(left),))
            elif self._accept("in"):
                left = self._among(left)
            else:
                return left

    def _among(self, value: t.Expression) -> t.Expression:
        self._expect("(")
        if self._peek() == "select":
            found: t.Expression = t.InQuery(value, self.query())
        else:
            found = t.Call("in", (value, *self._list()))
        self._expect(")")
        return found

    def query(self) -> t.Query:
        """A query; the subclass reads it."""
        raise NotImplementedError

    def _sum(self) -> t.Expression:
        left = self._product()
        while self._peek() in ("+", "-"):
            left = t.Call(self._take()[1], (left, self._product()))
        return left

    def _product(self) -> t.Expression:
        left = self._sign()
        while self._peek() in ("*", "/"):
            left = t.Call(self._take()[1], (left, self._sign()))
        return left

    def _sign(self) -> t.Expression:
        if self._accept("-"):
            return t.Call("negative", (self._sign(),))
        return self._postfix()

    def _postfix(self) -> t.Expression:
        value = self._primary()
        while True:
            if self._accept("."):
                value = t.Field(value, self._name())
            elif self._accept("["):
                value = t.Call("get", (value, self.expression()))
                self._expect("]")
            else:
                return value

    # --- primaries --------------------------------------------------------------------------

    def _list(self) -> tuple[t.Expression, ...]:
        values = [self.expression()]
        while self._accept(","):
            values.append(self.expression())
        return tuple(values)

    def _primary(self) -> t.Expression:
        kind, value = self._take()
        if kind == "number":
            return t.Literal(int(value))
        if kind == "text":
            return t.Literal(value[1:-1].replace("''", "'"))
        if value == "(":
            inner = self.expression()
            self._expect(")")
            return inner
        if value == "*":
            return self._star(None)
        if kind != "word":
            raise SqlError(f"SQL: no expression begins with {value!r}")
        return self._word(value)

    def _word(self, word: str) -> t.Expression:
        low = word.lower()
        if low in ("true", "false", "null"):
            return t.Literal({"true": True, "false": False, "null": None}[low])
        if low == "case":
            return self._case()
        if low in ("cast", "try_cast") and self._accept("("):
            value = self.expression()
            self._expect("as")
            cast = t.Cast(value, self._kind(), low == "try_cast")
            self._expect(")")
            return cast
        if self._peek() == "(":
            return self._call(low)
        if self._accept("->"):
            return t.Lambda(word, self.expression())
        path = [word.strip("`")]
        while self._accept("."):
            if self._accept("*"):
                return self._star(path[0])
            path.append(self._name())
        return t.Column(tuple(path))

    def _star(self, table: str | None) -> t.Star:
        without: list[str] = []
        if self._accept("except", "("):
            without.append(self._name())
            while self._accept(","):
                without.append(self._name())
            self._expect(")")
        return t.Star(table, tuple(without))

    def _case(self) -> t.Case:
        whens = []
        while self._accept("when"):
            condition = self.expression()
            self._expect("then")
            whens.append((condition, self.expression()))
        default = self.expression() if self._accept("else") else t.Literal(None)
        self._expect("end")
        return t.Case(tuple(whens), default)

    def _kind(self) -> str:
        """A type, as text: nested ones in angle brackets."""
        parts = [self._name()]
        depth = 0
        while self._peek() in ("<", ":", ",", ">") or (depth and self._peek() not in (")",)):
            sign = self._take()[1]
            depth += {"<": 1, ">": -1}.get(sign, 0)
            parts.append(sign)
            if not depth:
                break
        return "".join(parts).lower()

    def _call(self, name: str) -> t.Expression:
        self._expect("(")
        distinct = self._accept("distinct")
        args = () if self._peek() == ")" else self._list()
        self._expect(")")
        call = t.Call(name, args, distinct)
        if not self._accept("over"):
            return call
        if self._accept("("):
            spec: t.Spec | str = self._spec()
            self._expect(")")
        else:
            spec = self._name()
        return t.Window(call, spec)

    def _spec(self) -> t.Spec:
        partition: tuple[t.Expression, ...] = ()
        order: list[tuple[t.Expression, bool]] = []
        if self._accept("partition", "by"):
            partition = self._list()
        if self._accept("order", "by"):
            while True:
                value = self.expression()
                order.append((value, self._accept("desc")))
                self._accept("asc")
                if not self._accept(","):
                    break
        return t.Spec(partition, tuple(order), self._frame())

    def _frame(self) -> t.Frame | None:
        by_value = self._peek() == "range"
        if not by_value and self._peek() != "rows":
            return None
        self._take()
        self._expect("between", "unbounded", "preceding", "and")
        if self._accept("current", "row"):
            return t.Frame(0, by_value)
        distance = self._primary()
        self._expect("preceding")
        assert isinstance(distance, t.Literal) and isinstance(distance.value, int)
        return t.Frame(-distance.value, by_value)


class _Parser(_Expressions):
    """The grammar of queries."""

    def query(self) -> t.Query:
        """Selects joined by ``union all``."""
        parts: list[t.Query] = [self._select()]
        while self._accept("union", "all"):
            parts.append(self._select())
        return parts[0] if len(parts) == 1 else t.Union(tuple(parts))

    def _select(self) -> t.Select:
        self._expect("select")
        distinct = self._accept("distinct")
        items = [self._item()]
        while self._accept(","):
            items.append(self._item())
        self._expect("from")
        source = self._sources()
        where = self.expression() if self._accept("where") else None
        group = self._list() if self._accept("group", "by") else None
        having = self.expression() if self._accept("having") else None
        windows: dict[str, t.Spec] = {}
        if self._accept("window"):
            while True:
                name = self._name()
                self._expect("as", "(")
                windows[name] = self._spec()
                self._expect(")")
                if not self._accept(","):
                    break
        return t.Select(tuple(items), source, where, group, having, windows, distinct)

    def _item(self) -> tuple[t.Expression, str | None]:
        value = self.expression()
        return value, (self._name() if self._accept("as") else None)

    def _sources(self) -> t.Source:
        left = self._source()
        while True:
            outer = self._accept("left", "join") or self._accept("left", "outer", "join")
            if not outer and not (self._accept("join") or self._accept("inner", "join")):
                return left
            right = self._source()
            self._expect("on")
            left = t.Join(left, right, self.expression(), outer)

    def _source(self) -> t.Source:
        if self._accept("("):
            query = self.query()
            self._expect(")")
            return t.Derived(query, self._alias(""))
        name = self._name()
        return t.Named(name, self._alias(name))

    def _alias(self, default: str) -> str:
        if self._accept("as"):
            return self._name()
        at = self._at
        if at == len(self._tokens) or self._tokens[at][0] != "word":
            return default
        return default if self._peek() in _AFTER_SOURCE else self._name()
