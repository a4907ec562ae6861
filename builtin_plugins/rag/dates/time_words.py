"""The words for dates and periods in thirteen languages, as patterns without groups.

English, German, Spanish, French, Portuguese, Italian, Russian, Chinese, Arabic, Hindi, Turkish, Vietnamese
and Thai. A text is compared with the words of all of them; where a word means something else in another
language, a neighbor is required.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

Relation = Literal["within", "since", "after", "before", "until"]
Unit = Literal["day", "week", "month", "year"]

_JOINED: Final = r"\u0e00-\u0e7f\u3400-\u9fff"
BEGINS: Final = rf"(?<![^\W{_JOINED}])"
ENDS: Final = rf"(?![^\W{_JOINED}])"
"""Around words: Thai and Chinese put no spaces between theirs."""

LOCALES: Final = ("en", "de", "es", "fr", "pt", "it", "ru", "ar", "hi", "tr", "th")
"""Languages whose names of months are words; in Chinese and Vietnamese they are numbers."""

OTHER_MONTHS: Final[Mapping[str, int]] = {
    "jan": 1,
    "feb": 2,
    "apr": 4,
    "jun": 6,
    "jul": 7,
    "aug": 8,
    "sep": 9,
    "sept": 9,
    "oct": 10,
    "nov": 11,
    "dec": 12,
    "jänner": 1,
    "setiembre": 9,
    "fevrier": 2,
    "aout": 8,
    "decembre": 12,
    "январе": 1,
    "феврале": 2,
    "марте": 3,
    "апреле": 4,
    "мае": 5,
    "июне": 6,
    "июле": 7,
    "августе": 8,
    "сентябре": 9,
    "октябре": 10,
    "ноябре": 11,
    "декабре": 12,
    "كانون الثاني": 1,
    "شباط": 2,
    "آذار": 3,
    "نيسان": 4,
    "أيار": 5,
    "حزيران": 6,
    "تموز": 7,
    "آب": 8,
    "أيلول": 9,
    "تشرين الأول": 10,
    "تشرين الثاني": 11,
    "كانون الأول": 12,
    "ابريل": 4,
    "اغسطس": 8,
    "फरवरी": 2,
    "जून": 6,
    "अगस्त": 8,
    "सितम्बर": 9,
    "अक्तूबर": 10,
    "नवम्बर": 11,
    "दिसम्बर": 12,
}
"""Names of months beyond those of Unicode's tables: short, inflected and regional ones."""

NAMED_BY_NUMBER: Final = (
    r"model\w*|модел\w+|versi[oó]n|версия|release|room|raum|zimmer|sala|form|formular|pin|extension|durchwahl|"
    r"number|nummer|número|номер|line|linie|agenda|windows|server|office|studio|exchange|sharepoint|excel|"
    r"modèle|modell[oi]|modelos?|salle|chambre|stanza|numéro|numero|formulaire|modulo|"
    r"more than|over|above|mehr als|más de|plus de|mais de|più di|более|"
    r"novels?|books?|films?|movies?|songs?|albums?|plays?|titled|entitled|called|romans?|buch(?:es)?|livres?|"
    r"novelas?|libros?|romanz[oi]|livros?|роман\w*|книг\w*|фильм\w*|"
    r"(?:author|writer|director|autor\w*|auteure?|autrice|autore|автор\w*)(?: of| von| del?| di)?|"
    r"wrote|read|directed|composed|translated|schrieb|verfasste|escribió|(?:a|ont) écrit|écrivit|escreveu|"
    r"scrisse|(?:ha|hanno) scritto|написал\w*"
)
"""Words after which a number is no year: the Model 2000, room 2010, the novel 1984, "who wrote 1984?"."""

BEFORE_DATE: Final[Mapping[Relation, str]] = {
    "since": r"since|as from|starting(?: from| in| on)?|effective(?: from)?|(?:appl(?:y|ies|"
    r"icable)|valid|"
    r"in force) from|seit(?: dem)?|ab(?: dem)?|mit wirkung (?:vom|zum)|desde|a partir del?|"
    r"начиная с|с|со|自从|自|"
    r"从|منذ|ابتداء من|اعتبارا من|kể từ|từ|ตั้งแต่|นับตั้งแต่|"
    r"depuis|à (?:partir|compter) d[eu]|dès|a partir d[eo]|a partire da(?:l|lla)?|dal?",
    "after": r"after|later than|nach(?: dem)?|después del?|tras|posterior(?:es)? a|после|بعد|sau|"
    r"หลังจาก|หลัง|après|postérieure?s? à|depois d[eo]|após|dopo|successiv[oaie] al?",
    "before": r"before|prior to|earlier than|vor(?: dem)?|antes del?|anterior(?:es)? a|до|قبل|trước|"
    r"ก่อน|avant|antes d[eo]|prima d(?:el?|i)|antérieure?s? à|anterior[ei] al?",
    "until": r"until|till|up to|by|through|bis(?: zum| ende)?|hasta(?: el| finales de)?|截至|到|حتى|"
    r"cho đến|đến|tới|"
    r"จนถึง|ถึง|jusqu['’](?:à|au|en)|até|fino (?:al?|alla)",
    "within": r"as of|in|of|during|for|from|on|dated|im|am|von|vom|aus|für|während(?: des)?|en|del?|"
    r"durante|para|в|во|за|от|"
    r"на|在|في|لعام|عام|خلال|vào|trong|của|ใน|ของ|เมื่อ|"
    r"pendant|durant|au cours d[eu]|pour|du|em|nel",
}
"""Words before a date, and how what is asked about relates to it."""

_CHINESE_EVENT: Final = r"[^\W的]{0,6}?"
_TURKISH_EVENT: Final = r"\w+[dt][ae]n"
AFTER_DATE: Final[Mapping[Relation, str]] = {
    "before": rf"{_CHINESE_EVENT}(?:之前|以前)|前|\s*(?:के \S+ )?(?:से|के) पहले|"
    rf"\S*\s*(?:{_TURKISH_EVENT}\s+)?önce\w*",
    "after": rf"{_CHINESE_EVENT}(?:之后|以后)|后|\s*(?:के \S+ )?के बाद|\S*\s*(?:{_TURKISH_EVENT}\s+)?sonra\w*",
    "since": r"(?:以来|起|开始|至今)|\s*(?:onwards?|and later|on)\b|\s*से(?!\w)|\S*\s*(?:(?:yılından|"
    r"ayından|tarihinden)"
    r"\s+)?(?:beri|itibaren|bu yana)",
    "until": r"为止|\s*तक|\S*\s*(?:(?:yılına|ayına|tarihine|sonuna)\s+)?kadar",
    "within": r"(?:年?的|年?里|期间)|\s*(?:में|का|की|के)(?!\w)|\S*\s*(?:yılında|yılının|yılı|ayında)",
}
"""Words after a date: in Chinese, Hindi and Turkish. The first that fits counts."""

FILLERS: Final = (
    r"the|beginning of|start of|end of|year|dem|den|der|anfang|beginn|ende|jahr(?:es?|en)?|el|la|"
    r"año|los|начала|конца|"
    r"г\.|году|года|عام|سنة|شهر|năm|ngày|ปี|พ\.ศ\.|เดือน|วันที่|"
    r"les?|l['’]|année|an|début|fin|fine|inizio|início|fim|il|o|ano|anno|du|de|di|del|do"
)
"""Words between one of these and the date."""

_BY_RULES: Final = (
    r"(?!\s+(?:\w+\s+){0,2}\w*(?:richtlinien?|regel\w*|gesetz\w*|ordnung|satzung|vertrag|berichts?|"
    r"listen?|plan|handbuch|tarif\w*|norm\w*|protokoll|beschluss)\b)"
)
"""Not "nach der Richtlinie", which is no time but what it says."""
BEFORE_EVENT: Final[Mapping[Relation, str]] = {
    "since": r"since|seit|desde|depuis|с момента|со времени|kể từ|منذ",
    "after": rf"after|nach{_BY_RULES}|después|tras|(?<!d['’])après|depois|após|dopo|после|بعد|sau",
    "before": r"before|prior to|vor|antes(?=\s+d)|avant|prima(?=\s+d(?:i|e[il]\S*)\s)|до|قبل|trước",
}
"""Words before an event with a date: before the merger of 2024."""
OF_DATE: Final = r"of|in|from|von|vom|im|del?|en|du|d[io]|em|nel|от|в|في|عام|của|năm|ของ|ใน|ปี"
"""Words between an event and its date."""
BEFORE_DATED_EVENT: Final[Mapping[Relation, str]] = {
    "since": r"seit (?:der|dem|den) \w+",
    "after": rf"nach{_BY_RULES} (?:der|dem|den) \w+|после \w{{4,}}",
    "before": r"vor (?:der|dem|den) \w+|до \w{4,}",
}
"""The same with events that need none of these words: vor der Fusion 2024, до слияния 2024 года."""
THAI_EVENT: Final[Mapping[Relation, str]] = {
    "after": "หลัง[\u0e00-\u0e7f]{1,40}?ปี",
    "before": "ก่อน[\u0e00-\u0e7f]{1,40}?ปี",
}
END_OF_DATE: Final = r"end of|ende|конца|fine?|fim|final(?:es)?"
"""Before the end of 2024 is until 2024."""

RANGE: Final = (
    r"(?:from|between|von|zwischen|entre|de(?:sde)?|du|tra|fra|dal?|с|между|从|自|بين|من|từ|giữa|ตั้งแต่|ระหว่าง)",
    r"(?:to|and|until|till|through|bis|und|y|a|hasta|et|e|à|au|al|até|jusqu['’](?:à|au|en)|по|и|до|到|至|和|إلى|و|से|और|ve|ile|đến|và|ถึง|และ|[-–—])",
)
"""What stands before the first and between the two dates of a range."""

_PREVIOUS: Final = r"(?<!the )previous"
_AS_A_WHOLE: Final = r"(?!\s+(?:of|before|de[rs]|vor|meine[rs]|seine[rs]|ihre[rs])\b)"
"""Not "the last year of the warranty", nor "the previous year", which may follow any other."""

RELATIVE: Final[Mapping[tuple[Unit, int], Sequence[str]]] = {
    ("year", -1): (
        rf"(?:last|past|{_PREVIOUS}) year(?:['’]s)?{_AS_A_WHOLE}|"
        rf"letzte[nsm]? jahr(?:es)?{_AS_A_WHOLE}|"
        r"vergangene[nsm]? jahr(?:es)?|"
        r"vorig(?:e[nsm]?) jahr(?:es)?|(?<!aus dem )vorjahr(?:e?s)?|año (?:pasado|anterior)|прошл\w+ год\w*|"
        r"العام الماضي|"
        r"السنة الماضية|पिछले (?:साल|वर्ष)|गत वर्ष|geçen (?:yıl|sene)\w*|năm (?:ngoái|trước|vừa qua)|"
        r"année (?:dernière|passée)|an (?:dernier|passé)|ano passado|anno scorso|scorso anno",
        r"去年|ปีที่แล้ว|ปีก่อน|ปีที่ผ่านมา",
    ),
    ("year", 0): (
        r"this year(?:['’]s)?|the current year|diese[sm] jahr(?:es)?|des laufenden jahres|"
        r"im laufenden jahr|este año|"
        r"эт\w+ год\w*|текущ\w+ год\w*|هذا العام|هذه السنة|इस (?:साल|वर्ष)|bu (?:yıl|sene)\w*|năm nay|"
        r"cette année|année en cours|este ano|quest['’]anno|anno in corso",
        r"今年|本年|ปีนี้",
    ),
    ("year", 1): (
        r"(?:(?<!to )next|the coming) year(?:['’]s)?|(?<!ins )nächste[nsm]? jahr(?:es)?|"
        r"kommende[nsm]? jahr(?:es)?|"
        r"próximo año|"
        r"año que viene|следующ\w+ год\w*|будущ\w+ год\w*|العام (?:المقبل|القادم)|السنة (?:المقبلة|"
        r"القادمة)|"
        r"अगले (?:साल|वर्ष)|(?:gelecek|önümüzdeki) (?:yıl|sene)\w*|năm (?:sau|tới)|"
        r"année prochaine|an prochain|próximo ano|ano que vem|anno prossimo|prossimo anno",
        r"明年|ปีหน้า",
    ),
    ("month", -1): (
        rf"(?:last|past|{_PREVIOUS}) month(?:['’]s)?{_AS_A_WHOLE}|letzte[nsm]? monat(?:e?s)?{_AS_A_WHOLE}|"
        r"vergangene[nsm]? monat(?:e?s)?|"
        r"vormonat(?:e?s)?|mes (?:pasado|anterior)|прошл\w+ месяц\w*|الشهر الماضي|पिछले (?:महीने|"
        r"माह)|geçen ay\w*|"
        r"tháng (?:trước|vừa qua)|mois (?:dernier|passé)|mês passado|mese scorso|scorso mese",
        r"上个?月|เดือนที่แล้ว|เดือนก่อน",
    ),
    ("month", 0): (
        r"this month(?:['’]s)?|diese[nsm] monat(?:e?s)?|este mes|эт\w+ месяц\w*|هذا الشهر|"
        r"इस (?:महीने|माह)|bu ay|"
        r"tháng này|ce mois(?:-ci)?|este mês|questo mese",
        r"本月|这个月|เดือนนี้",
    ),
    ("week", -1): (
        rf"(?:last|past|{_PREVIOUS}) week(?:['’]s)?{_AS_A_WHOLE}|"
        rf"letzte[nr]? woche{_AS_A_WHOLE}|"
        r"vergangene[nr]? woche|vorwoche|"
        r"semana pasada|"
        r"прошл\w+ недел\w+|الأسبوع الماضي|पिछले (?:सप्ताह|हफ़्ते|हफ्ते)|geçen hafta\w*|"
        r"tuần (?:trước|vừa qua)|semaine (?:dernière|passée)|semana passada|"
        r"settimana scorsa|scorsa settimana",
        r"上周|上个?星期|สัปดาห์ที่แล้ว|อาทิตย์ที่แล้ว",
    ),
    ("day", -1): (r"yesterday(?:['’]s)?|gestern|ayer|вчера|أمس|dün|hôm qua|ontem|ieri", r"昨天|เมื่อวาน"),
}
"""Periods relative to today: words that stand alone, and words of languages without spaces between them."""

COUNTED: Final[Sequence[tuple[str, str]]] = (
    (r"(?:last|past|previous)\s+(?P<number>\d{1,3})\s+", rf"(?:days|weeks|months|years){_AS_A_WHOLE}"),
    (
        r"(?:letzten|vergangenen)\s+(?P<number>\d{1,3})\s+",
        rf"(?:tagen?|wochen|monaten?|jahren?){_AS_A_WHOLE}",
    ),
    (r"últim[oa]s\s+(?P<number>\d{1,3})\s+", "días|semanas|meses|años"),
    (r"(?P<number>\d{1,3})\s+derni(?:ers|ères)\s+", "jours|semaines|mois|ans|années"),
    (r"últim[oa]s\s+(?P<number>\d{1,3})\s+", "dias|semanas|meses|anos"),
    (r"ultim[ie]\s+(?P<number>\d{1,3})\s+", "giorni|settimane|mesi|anni"),
    (r"последни[ех]\s+(?P<number>\d{1,3})\s+", r"дн\w+|недел\w+|месяц\w+|лет|год\w*"),
    (r"(?:最近|过去)\s*(?P<number>\d{1,3})\s*", "天|周|个月|年"),
    (r"آخر\s+(?P<number>\d{1,3})\s+", "يوما?|أيام|أسبوعا?|أسابيع|شهرا?|أشهر|سنة|سنوات"),
    (r"पिछले\s+(?P<number>\d{1,3})\s+", "दिनों?|हफ़्तों|सप्ताह|महीनों|महीने|सालों?|वर्षों"),
    (r"son\s+(?P<number>\d{1,3})\s+", "gün|hafta|ay|yıl"),
)
COUNTED_FIRST: Final[Sequence[tuple[str, str]]] = (
    ("ngày|tuần|tháng|năm", r"\s+(?:qua|gần đây|vừa qua)"),
    ("วัน|สัปดาห์|เดือน|ปี", r"\s*(?:ที่ผ่านมา|ล่าสุด|ที่แล้ว)"),
)
"""A number of units until today; here the number comes first, and words after the unit."""

UNITS: Final[Mapping[Unit, str]] = {
    "day": "days|jours|dias|giorni|tage|tagen|tag|días|дн|天|يوم|أيام|दिन|gün|ngày|วัน",
    "week": "weeks|semaines|settimane|woche|semanas|недел|周|أسبوع|أسابيع|हफ़्त|सप्ताह|hafta|tuần|สัปดาห์",
    "month": "months|mois|mesi|monat|meses|месяц|个月|شهر|أشهر|महीन|ay|tháng|เดือน",
    "year": "years|ans|années|anos|anni|jahr|años|лет|год|年|سنة|سنوات|साल|वर्ष|yıl|năm|ปี",
}
"""How the words of a unit begin."""

NEWEST: Final = (
    r"(?:the )?(?:newest|(?<!at the )latest(?! (?:date|day|time|i|we|you|they)(?!\w))|"
    r"most recent|most up-to-date)|"
    r"neuest\w*|aktuellst\w*|jüngst\w*(?= (?:fassung|version|stand|ausgabe|"
    r"preis|bericht|zahlen|daten|beschl))|"
    r"letzte[nrs]?(?= (?:fassung|version|stand|ausgabe))|(?:más (?:recientes?|nuev[oa]s?))|"
    r"últim[oa]s?(?= (?:versi|precio|tarifa|edici))|(?:сам\w+ )?новейш\w+|сам\w+ последн\w+|"
    r"последн\w+(?= (?:верси|цен|редакц|данн|отч[её]т|стоимост|"
    r"тариф|правил|издани|изменени|решени|протокол))|"
    r"сам\w+ нов\w+|"
    r"(?:ال)?أحدث|नवीनतम|सबसे न(?:या|ई|ए)|en (?:yeni|son|güncel)\w*|(?:mới|gần đây) nhất|"
    r"plus (?:récent\w*|à jour)|derni(?:er|ère)s?(?= (?:version|édition|prix|tarif|liste|rapport))|"
    r"mais (?:recentes?|nov[oa]s?|atua(?:l|is))|últim[oa]s?(?= (?:versã|versõ|preç|ediç))|"
    r"più (?:recent[ei]|nuov[oaie]|aggiornat[oaie])|ultim[oaie](?= (?:version|edizion|prezz|listin|rapport))",
    r"最新|ล่าสุด|ใหม่ที่สุด",
)
CURRENT: Final = (
    r"(?<!which )(?<!what )(?<!maximum )(?<!alternating )(?<!direct )current"
    r"(?= \w)(?! (?:accounts?|assets?|liabilities|ratio|flow|of|in|through|for|to|from|is|are|"
    r"does|do|can|may|must)(?!\w))|"
    r"currently|at present|presently|nowadays|right now|now|today(?:['’]s)?|these days|"
    r"derzeit\w*|aktuell\w*|"
    r"momentan\w*|heut(?:e|ig)\w*|gegenwärtig\w*|zurzeit|jetzt\w*|actualmente|(?:el|la|los|"
    r"las) \w+ actual(?:es)?|"
    r"hoy|ahora|vigentes?|сейчас|сегодня|действующ\w+|текущ\w+|актуальн\w+|нынешн\w+|حاليا|"
    r"(?:ال)?حالي(?:ة)?|الآن|"
    r"اليوم|(?:ال)?ساري(?:ة)?|अभी|वर्तमान|आज|मौजूदा|şu anda?|şimdi\w*|bugün\w*|güncel|geçerli|"
    r"yürürlükteki|"
    r"hiện (?:nay|tại|hành)|bây giờ|hôm nay|actuelle(?:ment|s)?|actuels?|aujourd['’]hui|maintenant|"
    r"atual(?:mente)?|atuais|hoje|agora|attual[ei]|attualmente|oggi|adesso",
    r"现在|目前|当前|现行|如今|ปัจจุบัน|ตอนนี้|วันนี้|ขณะนี้",
)
"""What asks for the newest, and for what applies now."""

VALID_FROM: Final = (
    r"(?:appl(?:y|ies|icable)|valid|effective|in force|in effect)\s+(?:as\s+)?(?:from|since|of|on)|"
    r"effective(?: date)?|with effect (?:from|as of|on)|mit wirkung (?:vom|zum|ab)|"
    r"avec effet (?:au|du|à compter du)|con efectos? (?:a partir del?|desde(?: el)?|del?)|"
    r"con effetto da(?:l|ll['’])?|com efeitos? a partir d[eo]|"
    r"(?:comes?|enters?|entered|came) into (?:force|effect)(?: on| as of)?|takes? effect(?: on|"
    r" from)?|valid from|"
    r"gültig (?:ab|seit|vom)|gilt (?:ab|seit)(?: dem)?|gelten (?:ab|seit)(?: dem)?|in kraft (?:ab|"
    r"seit)|"
    r"tritt (?:am|zum|mit wirkung vom)|treten (?:am|zum)|wirksam (?:ab|zum)|"
    r"(?:válid[oa]s?|vigentes?|en vigor|vigencia|aplicables?|se aplica) (?:a partir del?|"
    r"desde(?: el)?)|"
    r"entr(?:a|ará|ó) en vigor(?: el)?|(?:действу\w+|применя\w+|действител\w+) (?:с|со)|"
    r"вступа\w+ в силу(?: с)?|"
    r"(?:ساري(?:ة)?|يسري|تسري|نافذ(?:ة)?|يطبق|تطبق)(?: المفعول)?(?: (?:اعتبارا|"
    r"ابتداء))? من(?: تاريخ)?|(?:اعتبارا|ابتداء) من(?: تاريخ)?|"
    r"(?:có hiệu lực|áp dụng)(?: kể)? từ|"
    r"(?:valables?|applicables?|en vigueur|s['’]applique(?:nt)?) (?:à (?:partir|compter) d[eu]|depuis|dès)"
    r"(?: le)?|"
    r"entr(?:e|era|ée?) en vigueur(?: le| à compter du)?|"
    r"(?:em vigor|aplicáve(?:l|is)|aplica-se) (?:a partir d[eo]|desde)|entr(?:a|ará|ou) em vigor(?: em| a)?|"
    r"(?:valid[oaie]|in vigore|applicabil[ei]|si applica) (?:a partire )?da(?:l|ll['’])?|"
    r"entr(?:a|erà|ata|ato) in vigore(?: il| dal)?",
    r"(?:มีผลบังคับใช้|มีผลใช้บังคับ|ใช้บังคับ|มีผล)(?:ตั้งแต่)?",
)
"""Words before the date from which a document applies."""

FROM_AFTER: Final = (
    r"\s*(?:起)?\s*(?:施行|生效|实施|执行|适用)|\s*से (?:लागू|प्रभावी|मान्य)|"
    r"\S*\s*(?:tarihinden\s+)?itibaren\s+(?:geçerli|"
    r"yürürlük|uygulan)\w*|\S*\s*tarihinde\s+yürürlüğe|\s+in kraft"
)
"""Words after that date, in languages where the verb comes last."""

VALID_UNTIL: Final = (
    r"(?:appl(?:y|ies|icable)|valid|effective|in force|in effect)\s+(?:until|till|through|up to)|"
    r"(?:expires?|ends?|terminates?)(?: on)?|expiry(?: date)?|"
    r"gültig bis(?: zum)?|gilt bis(?: zum)?|gelten bis(?: zum)?|in kraft bis(?: zum)?|läuft (?:am|"
    r"bis)(?: zum)?|"
    r"endet am|befristet bis(?: zum)?|"
    r"(?:válid[oa]s?|vigentes?|en vigor|aplicables?|se aplica) hasta(?: el)?|(?:vence|caduca|"
    r"expira) el|"
    r"(?:действу\w+|действител\w+|применя\w+) (?:до|по)|истека\w+|"
    r"(?:ساري(?:ة)?|يسري|تسري|صالح(?:ة)?)(?: المفعول)? (?:حتى|لغاية)|(?:ينتهي|تنتهي)(?: في)?|"
    r"(?:có hiệu lực|áp dụng) (?:cho )?(?:đến|tới)|hết hạn(?: vào)?|"
    r"(?:valables?|applicables?|en vigueur) jusqu['’](?:à|au|en)(?: la fin)?|expire(?: le)?|"
    r"prend fin(?: le)?|"
    r"(?:válid[oa]s?|em vigor|vigentes?) até(?: ao?)?|(?:expira|termina) (?:em|a)|"
    r"(?:valid[oaie]|in vigore) fino al?|scade il",
    r"(?:有效期至|有效至|适用至|失效日期)|(?:ใช้ได้จนถึง|มีผลถึง|มีผลจนถึง|หมดอายุ(?:วันที่)?|สิ้นสุด(?:วันที่)?)",
)
UNTIL_AFTER: Final = (
    r"\s*(?:失效|到期|为止有效|止)|\s*तक (?:लागू|मान्य|वैध)|\S*\s*(?:tarihine\s+)?kadar\s+(?:geçerli|"
    r"yürürlük)\w*|"
    r"\S*\s*tarihinde\s+sona"
)
"""The same for the last day on which a document applies."""

SUPERSEDES: Final = (
    r"supersed\w+|replac\w+|ersetz\w+|löst\b.{0,40}\bab|sustituy\w+|reemplaz\w+|deroga\w*|замен\w+|"
    r"отмен\w+|يحل محل|تحل محل|"
    r"يلغي|प्रतिस्थापित|का स्थान|yerine\s+geç\w*|yerini\s+al\w*|thay thế|(?:version|edition|fassung|"
    r"versión|редакци\w+|"
    r"phiên bản|versão|versione) (?:of|from|dated|vom|von|del?|du|di|от)|"
    r"remplac\w+|abrog\w+|substitu[ií]\w*|revoga\w*|sostitui\w+",
    r"取代|代替|废止|แทนที่|แทนฉบับ|ยกเลิก",
)
"""What is said of an earlier version, whose date is not that of the document."""
