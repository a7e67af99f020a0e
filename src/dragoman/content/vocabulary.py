"""Which language a text is in, as far as small words and telling letters can say.

Promises to say nothing where it is not sure: it compares languages by words that only one of them has. A
table of the commonest function words a language is enough for that, and needs no model, no download and no
chance; single words and names are beyond it. Knows nothing of checks.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_LETTERS_ALONE = "".join(chr(code) if chr(code).isalpha() else " " for code in range(128))
"""ASCII, with a blank for all that is no letter."""
_BEYOND_LATIN = re.compile("[^\0-\xb4\xb6-\u024f]")
"""A sign behind the Latin blocks, or the one Greek letter among them (µ)."""
_LONE_HITS_MIN = 2
"""Different small words of the feared language that are enough where the expected one has none at all."""
_HITS_MIN = 3
_STRANGER_HITS_MIN = 4

_FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in {
        "af": "die het nie en van is wat vir word met op jy jou te kan hierdie deur aan ook sal moet hulle "
        "om as wees",
        "az": "və bu bir üçün ilə də olan daha çox hər sizin siz olaraq kimi edin ki yox ancaq sonra deyil",
        "ca": "el la els les i amb per que és una un aquest aquesta dels del al no se ha han pot més com "
        "però són",
        "cs": "a je se na že v s pro nebo jako tento tato toto jsou není být by byl bude můžete pokud k z "
        "do od při který",
        "cy": "y yr a mae yn ar i o gyda eich hwn hon ei wedi bod nid am gan neu os",
        "da": "og er det en et at på til med for der af som den ikke du din dit dine kan skal vil har fra "
        "eller denne",
        "de": "der die das und ist nicht ein eine einen mit für auf von zu den dem des im sie wird werden "
        "kann sich oder bei aus nach wurde diese dieser dieses ihre ihren haben sind auch wenn um",
        "en": "the and is are of to in that this for with on be your you it not as can will from by or an "
        "have has was which when if please all there their at we do does more into about what how "
        "should been were but",
        "es": "el la los las de que y en un una es por con para se del al no su sus este esta está como más "
        "pero o si ha han ser puede sobre desde cuando debe",
        "et": "ja on ei et see selle ning või kui oma ta mis kas saab ka teie seda olema palun pole siis",
        "eu": "eta da ez bat du dira edo hau zure izan egin dute honek baino ere dago behar",
        "fi": "ja on ei se että tämä tai kun voi ovat mutta joka sen kanssa myös olet sinun jos niin mukaan "
        "eivät ole",
        "fr": "le la les de des et est un une du en que qui dans pour pas sur au aux avec ce cette ces se "
        "sont vous votre vos ou par plus nous être il elle a été peut si ne",
        "ga": "an na agus is ar go le do seo sin atá bhfuil níl nach mar ach nó chun",
        "gl": "o a os as e de que en un unha é non para por con do da este esta máis pode como se seu",
        "hr": "i je se na da u za nije su s od ili kao ovaj ova ovo koji koja biti ako vam vaš možete te iz",
        "hu": "a az és hogy nem egy ez is van meg el ha vagy csak mint kell lehet ezt azt már még ön minden",
        "id": "dan yang di ini untuk dengan dari tidak anda ke atau itu pada adalah akan dapat telah oleh "
        "jika bisa sebagai dalam ada lebih sudah",
        "is": "og að er í á sem ekki það til með fyrir við um þú þinn þessi eða ef frá hefur verið eru",
        "it": "il lo la gli le di che e è un una in per con non del della dei delle al alla si sono questo "
        "questa tuo tuoi come più da nel ma se o ha essere può",
        "lt": "ir yra ne kad tai į su iš ar jūsų šis ši nuo kaip bet jei buvo gali arba per už",
        "lv": "un ir ne ka uz ar no lai par šis šī vai jūs jūsu nav kas kā bet ja tika var pie",
        "ms": "dan yang di ini untuk dengan dari tidak anda ke atau itu pada ialah akan boleh telah oleh "
        "jika sila sebagai dalam ada lebih",
        "nb": "og er det en et at på til med for som den ikke du din ditt dine kan skal vil har fra eller "
        "denne av å ble må være",
        "nl": "de het een en van is dat niet in op te met voor zijn aan er dit deze die of door u je uw "
        "naar als kan wordt worden om ook bij heeft moet uit",
        "pl": "i w na się z do nie że to jest o dla po przez od jak lub oraz ten ta te który która które "
        "być są czy aby twój może jeśli ale za został",
        "pt": "o a os as de que e em um uma é não para por com do da dos das no na se seu sua este esta são "
        "como mais ou foi pode ser você ao pelo quando mas",
        "ro": "și de la în a cu pe un o nu este pentru care din sau mai dumneavoastră vă să al ale acest "
        "această sunt fi poate prin dacă",
        "sk": "a je sa na že v s pre alebo ako tento táto toto sú nie byť by bol bude môžete ak k z do od "
        "pri ktorý",
        "sl": "in je se na da v za ni so z s od ali kot ta to ki biti če vam vaš lahko te iz pri ne",
        "sq": "dhe është në e të një me për nga që nuk kjo ky si ose do ju juaj janë mund më",
        "sv": "och är det en ett att på till med för som den inte du din ditt dina kan ska vill har från "
        "eller denna av om måste när var",
        "sw": "na ya wa kwa ni la katika za hii hiyo kama au si kuwa yako wako hakuna haya",
        "tl": "ang ng sa na mga at ay hindi ito para kung mo ka iyong may o ni si lang",
        "tr": "ve bir bu için ile de da olarak daha çok değil en gibi var yok ya veya olan sonra ancak "
        "kadar her lütfen mı mi ne",
        "vi": "và là của các có không được cho một này với trong để bạn những khi đã người từ hoặc trên nếu "
        "sẽ vui",
        "be": "і у не на што з да для гэта як або ад вы ваш ёсць быць пры калі каб па",
        "bg": "и на е да не се за от с в по са това този тази или като ще може ако при вие вашия който",
        "mk": "и на е да не се за од со во по ова овој оваа или како ќе може ако при вие вашиот кој",
        "ru": "и в не на что с по для это как из от к или вы ваш у за при если бы был быть его он она они "
        "может уже чтобы только все будет",
        "sr": "и је се на да у за није су с од или као овај ова ово који која бити ако вам ваш можете те из",
        "uk": "і в не на що з до для це як або від ви ваш та у за при якщо бути його він вона вони може вже "
        "щоб є цей ця",
        "ar": "في من على إلى أن هذا هذه التي الذي لا ما هو هي مع عن كان تم أو قد لم يمكن كل",
        "fa": "در از به که این را با است برای آن های شما یک می شده نمی شود تا کنید هر خود یا",
        "ur": "کے میں کی ہے اور سے کو کا اس یہ نہیں پر آپ ہیں ایک بھی کر لیے ہو تھا یا",
    }.items()
}
_SPEAKERS: Mapping[str, frozenset[str]] = {
    word: frozenset(name for name, words in _FUNCTION_WORDS.items() if word in words)
    for word in frozenset().union(*_FUNCTION_WORDS.values())
}
"""Word → the languages that have it."""
_KIN = (
    frozenset(("da", "nb", "nn", "no", "sv")),
    frozenset(("cs", "sk")),
    frozenset(("hr", "sr", "bs", "sl", "sh", "cnr")),
    frozenset(("es", "gl", "ca", "pt", "ast", "an", "oc")),
    frozenset(("id", "ms")),
    frozenset(("nl", "af")),
    frozenset(("ru", "uk", "be", "bg", "mk", "sr")),
    frozenset(("tr", "az")),
)
"""Languages that share so many small words that one of them is not held against another."""
_SAME = {"no": "nb", "nn": "nb", "bs": "hr", "fil": "tl"}

_SCRIPTS: Mapping[str, frozenset[str]] = {
    "Jpan": frozenset(("CJK", "HIRAGANA", "KATAKANA")),
    "Kore": frozenset(("HANGUL", "CJK")),
    "Hans": frozenset(("CJK", "BOPOMOFO")),
    "Hant": frozenset(("CJK", "BOPOMOFO")),
    **{
        code: frozenset((name,))
        for code, name in {
            "Latn": "LATIN", "Cyrl": "CYRILLIC", "Grek": "GREEK", "Arab": "ARABIC", "Hebr": "HEBREW",
            "Armn": "ARMENIAN", "Geor": "GEORGIAN", "Deva": "DEVANAGARI", "Beng": "BENGALI",
            "Guru": "GURMUKHI",
            "Gujr": "GUJARATI", "Orya": "ORIYA", "Taml": "TAMIL", "Telu": "TELUGU", "Knda": "KANNADA",
            "Mlym": "MALAYALAM", "Sinh": "SINHALA", "Thai": "THAI", "Laoo": "LAO", "Tibt": "TIBETAN",
            "Mymr": "MYANMAR", "Khmr": "KHMER", "Ethi": "ETHIOPIC", "Thaa": "THAANA", "Mong": "MONGOLIAN",
        }.items()
    },
}  # fmt: skip
"""ISO 15924 code → the words that Unicode's names of its letters begin with."""
_NAMES = frozenset().union(*_SCRIPTS.values())
_NO_SCRIPT = frozenset(("",))

_SIMPLIFIED = (
    "这个们来时说国会对为开过长样发学经见进动从问电还现实点业两体关机种应话数张无间处员给听让书头车门语报"
    "运传页码选择确认输设备误库网络络启标题删录账户请务类验证图传载链连续术级统译简单击显设视频项"
)
_TRADITIONAL = (
    "這個們來時說國會對為開過長樣發學經見進動從問電還現實點業兩體關機種應話數張無間處員給聽讓書頭車門語報"
    "運傳頁碼選擇確認輸設備誤庫網絡絡啟標題刪錄帳戶請務類驗證圖傳載鏈連續術級統譯簡單擊顯設視頻項"
)
_ONLY_SIMPLIFIED = frozenset(_SIMPLIFIED) - frozenset(_TRADITIONAL)
_ONLY_TRADITIONAL = frozenset(_TRADITIONAL) - frozenset(_SIMPLIFIED)
"""Characters by which one can tell the two ways to write Chinese."""


def scripts_of(code: str) -> frozenset[str]:
    """The scripts, by Unicode's names, that an ISO 15924 code stands for; empty for one not known here."""
    return _SCRIPTS.get(code, frozenset())


def is_latin(text: str) -> bool:
    """Whether all letters of a text are surely Latin; there need not be any."""
    return text.isascii() or not _BEYOND_LATIN.search(text)


def letters_by_script(text: str) -> Counter[str]:
    """How many letters of which script a text holds."""
    counts = Counter(map(_script_of, text))
    counts.pop("", None)
    return counts


def scripts_in(text: str) -> frozenset[str]:
    """The scripts of the letters that a text holds."""
    return frozenset(map(_script_of, set(text))) - _NO_SCRIPT


def telling_characters(text: str) -> tuple[set[str], set[str]]:
    """The characters of a Chinese text that are only simplified, and those that are only traditional."""
    return set(text) & _ONLY_SIMPLIFIED, set(text) & _ONLY_TRADITIONAL


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, in order."""
    lower = text.lower()
    if lower.isascii() and "'" not in lower:
        return lower.translate(_LETTERS_ALONE).split()
    return _WORD.findall(lower.replace("’", "'"))


def winner(said: Sequence[str], expected: str, feared: str) -> str:
    """The language that words are of where that is surely not `expected`; else empty.

    `feared` is the language that it may have been left in, which less evidence is enough for.
    """
    wanted, left_in = _SAME.get(expected, expected), _SAME.get(feared, feared)
    if wanted not in _FUNCTION_WORDS:
        return ""
    strangers = _strangers(wanted)
    if strangers.isdisjoint(said):
        return ""
    strange = [word for word in said if word in strangers]
    if len(strange) <= len(said) // 6:
        return ""
    own = sum([word in _FUNCTION_WORDS[wanted] for word in said])
    best, most = "", max(3 * own, len(said) // 6)
    if len(strange) <= most:
        return ""
    different = set(strange)
    if len(different) < _LONE_HITS_MIN:
        return ""
    met: dict[str, int] = {}
    for word in strange:
        for name in _SPEAKERS[word]:
            met[name] = met.get(name, 0) + 1
    for name, count in met.items():
        if count <= most or _are_kin(name, wanted):
            continue
        needed = (_HITS_MIN if own else _LONE_HITS_MIN) if name == left_in else _STRANGER_HITS_MIN
        if sum([name in _SPEAKERS[word] for word in different]) >= needed:
            best, most = name, count
    return best


@lru_cache(maxsize=128)
def _strangers(language: str) -> frozenset[str]:
    """The small words that other languages have, and this one has not."""
    return frozenset(_SPEAKERS) - _FUNCTION_WORDS[language]


@lru_cache(maxsize=1024)
def _are_kin(one: str, other: str) -> bool:
    return any(one in kin and other in kin for kin in _KIN)


@lru_cache(maxsize=8192)
def _script_of(character: str) -> str:
    if not character.isalpha():
        return ""
    name = unicodedata.name(unicodedata.normalize("NFKC", character)[:1], "").partition(" ")[0]
    return name if name in _NAMES else ""
