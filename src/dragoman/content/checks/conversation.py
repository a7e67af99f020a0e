"""Checks that a translation came back, and nothing else of a conversation: markers, refusals, answers.

Promises that what the source itself says is never held against its translation. Knows no provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dragoman.content.checks.pair import Finding, Pair, Severity, Side, language
from dragoman.content.checks.reading import source_width, width


def leaks(pair: Pair) -> Iterable[Finding]:
    """Our own signs, the answer's envelope, or a model that speaks about itself, in the text."""
    return () if pair.after.is_quiet and not may_refuse(pair) else _leaked(pair)


def may_refuse(pair: Pair) -> bool:
    """Whether a translation may speak about itself; of Latin text without code its words can tell that."""
    target = pair.target
    if pair.is_latin and target is pair.target_words and "'" not in target and "’" not in target:
        return not REFUSING_WORDS.isdisjoint(pair.said)
    return any(map(target.lower().__contains__, REFUSED_BY))


def _leaked(pair: Pair) -> Iterator[Finding]:
    if any(sign in pair.target and pair.target.count(sign) > pair.source.count(sign) for sign in "⟦⟧"):
        yield Finding("leaks", "error", "A marker (⟦…⟧) is left in the translation.")
    if _SIGN.search(pair.target):
        for pattern, said in _LEAKS:
            if pattern.search(pair.target) and not pattern.search(pair.source):
                yield Finding("leaks", "error", said)
    if not any(map(pair.target.lower().__contains__, REFUSED_BY)):
        return
    if REFUSALS.search(pair.target) and not REFUSALS.search(pair.source):
        yield Finding("leaks", "error", "The answer speaks about itself instead of translating.")


def answered(pair: Pair) -> Iterable[Finding]:
    """A source that asks or orders was obeyed: its translation opens like an answer, or has another size."""
    return _obeyed(pair) if pair.before.fact(_asks) else ()


def _obeyed(pair: Pair) -> Iterator[Finding]:
    opens = bool(_OPENINGS.match(pair.target)) and not _OPENINGS.match(pair.source)
    source, target = pair.before.fact(source_width), width(pair.target_words)
    long, huge = target > max(_ANSWER_MIN, 3 * source), target > max(3 * _ANSWER_MIN, 6 * source)
    short = source >= _ORDER_MIN and target < source / 4
    if huge or long or short or (opens and target > 1.5 * source):
        severity: Severity = "error" if huge or (opens and long) else "warning"
        yield Finding("answered", severity, "The source's question or order was answered, not translated.")


def _asks(side: Side) -> bool:
    """Whether a source reads like something said to a model."""
    text = side.words.strip()
    if text.rstrip("\"'”»)").endswith(("?", "？", "؟", "՞")):
        return True
    return bool(_INJECTION.search(text) or (language(side.locale) == "en" and _ORDER.match(text)))


_ANSWER_MIN, _ORDER_MIN = 80, 40
_SIGN = re.compile(r"[{<\[]")
_LEAKS = (
    (
        re.compile(r"\{\s*\"(?:id|items|text|source_locale|target_locale)\"\s*:"),
        "The translation holds JSON of the request or the answer.",
    ),
    (
        re.compile(
            r"<\|[a-z_]{2,20}\|>|\[/?INST\]|<</?SYS>>|</?(?:think|translation|source_text|target_text)>"
        ),
        "The translation holds signs that a model is steered by.",
    ),
)
REFUSALS = re.compile(
    "|".join(
        (
            r"\bas an ai (?:language )?(?:model|assistant)\b",
            r"\bi['’]?m sorry, (?:but )?i (?:can['’]?t|cannot|am unable)\b",
            r"\bi (?:cannot|can['’]t) (?:assist|help) with\b|\bhere(?:['’]s| is) the translation\b",
            r"\bals (?:ein )?ki-(?:sprach)?modell\b|\bhier ist die übersetzung\b",
            r"\bes tut mir leid, (?:aber )?(?:ich kann|dabei kann ich)\b",
            r"\ben tant qu(?:['’]ia|e modèle (?:de langage|linguistique))\b|\bvoici la traduction\b",
            r"\bje suis désolée?, (?:mais )?je ne (?:peux|suis) pas\b",
            r"\bcomo (?:un )?modelo de lenguaje\b|\baquí (?:está|tienes) la traducción\b",
            r"\blo siento, (?:pero )?no puedo (?:ayudar|traducir|cumplir)",
            r"\bcomo (?:um )?modelo de linguagem\b|\baqui está a tradução\b",
            r"\b(?:desculpe|lamento), (?:mas )?não posso (?:ajudar|traduzir)",
            r"\bcome modello (?:linguistico|di linguaggio)\b|\becco la traduzione\b",
            r"\bmi dispiace, (?:ma )?non posso (?:aiutar|tradurre)",
            r"\bals (?:een )?ai-(?:taal)?model\b|\bhier is de vertaling\b",
            r"\bhet spijt me, (?:maar )?ik kan (?:niet|dat niet|hier)\b",
            r"\bjako model językowy\b|\bprzykro mi, (?:ale )?nie mogę\b|\boto tłumaczenie\b",
            r"\bкак (?:языковая модель|ии)\b|\bизвините, (?:но )?я не могу (?:помочь|перевести|выполнить)",
            r"\bвот перевод\b|\bяк мовна модель\b|\bось переклад\b",
            r"\bbir yapay zeka (?:dil )?modeli olarak\b|\bişte çeviri\b",
            r"作为(?:一个)?(?:人工智能|AI|语言模型)|以下是(?:译文|翻译)",
            r"(?:对不起|抱歉)[,，]?我(?:无法|不能)(?:提供|协助|翻译|帮助)",
            r"作為(?:一個)?(?:人工智慧|AI|語言模型)|以下是(?:譯文|翻譯)",
            r"(?:對不起|抱歉)[,，]?我(?:無法|不能)(?:提供|協助|翻譯|幫助)",
            r"(?:AI|言語モデル)として(?:は|、)|翻訳は以下の通り",
            r"申し訳(?:ありません|ございません)が、?(?:その|この)?(?:ご要望|リクエスト|翻訳)",
            r"(?:AI|인공지능) (?:언어 )?모델로서|죄송하지만,? (?:도와드릴|번역할) 수 없",
            r"كنموذج لغوي|بصفتي نموذج|إليك الترجمة|آسف، (?:لكن )?لا (?:أستطيع|يمكنني) (?:المساعدة|ترجمة)",
        )
    ),
    re.IGNORECASE,
)
REFUSED_BY = (
    "as an ai ", "m sorry, ", "t assist with", "t help with", "the translation",
    "modell", "hier ist die übersetzung", "es tut mir leid", "en tant qu", "voici la traduction",
    "je suis désolé", "modelo de ", "la traducción", "lo siento, ", "aqui está a tradução", "não posso ",
    "ecco la traduzione", "mi dispiace", "ai-model", "ai-taalmodel", "hier is de vertaling", "het spijt me",
    "model językowy", "przykro mi", "oto tłumaczenie", "языковая модель", "как ии", "извините, ",
    "вот перевод", "мовна модель", "ось переклад", "r yapay zeka ", "şte çeviri",
    "作为", "以下是", "无法", "不能", "作為", "無法", "として", "以下の通り", "申し訳",
    "모델로서", "죄송하지만",
    "كنموذج لغوي", "بصفتي نموذج", "إليك الترجمة", "آسف، ",
)  # fmt: skip
"""Each refusal holds one of these in lower case: almost no other text does, and to look for them is cheap."""
REFUSING_WORDS = frozenset((
    "ai", "sorry", "assist", "help", "translation", "ki", "übersetzung", "leid", "modèle", "traduction",
    "désolé", "désolée", "modelo", "traducción", "siento", "tradução", "desculpe", "lamento", "modello",
    "traduzione", "dispiace", "vertaling", "spijt", "model", "przykro", "tłumaczenie", "yapay", "çeviri",
))  # fmt: skip
"""Each refusal in Latin letters has one of these words, unless it has an apostrophe."""
_OPENINGS = re.compile(
    r"\s*(?:sure|certainly|of course|absolutely|great question|here (?:is|are)|let me"
    r"|natürlich|gerne|selbstverständlich|bien sûr|certainement|avec plaisir|claro|por supuesto|con gusto"
    r"|com certeza|certo|certamente|natuurlijk|zeker|oczywiście|конечно|разумеется|звичайно"
    r"|当然|當然|もちろん|물론|بالطبع|بالتأكيد)"
    r"\s*[,!.:，！。：、،]",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"(?:please\s+)?(?:write|ignore|disregard|forget|translate|summari[sz]e|explain|describe|generate|compose"
    r"|tell me|give me|list|answer|repeat|act as|pretend|you are (?:a|an|now)|respond|reply|output|say)\b",
    re.IGNORECASE,
)
_INJECTION = re.compile(
    r"\b(?:ignore|disregard|forget) (?:all |any |the |your )*(?:previous|prior|above|earlier) "
    r"(?:instructions|rules|prompts?)\b|\bsystem prompt\b",
    re.IGNORECASE,
)
