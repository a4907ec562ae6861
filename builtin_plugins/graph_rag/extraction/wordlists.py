"""Short lists of words for the rules, each named for its purpose."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


OPENERS = word_set(
    """
    a about above according across additionally after afterwards again against all along already also
    although always am among an and another any are around as at back based be because been before
    behind below beside besides between beyond both but by can consequently could currently despite did
    do does don't down due during each earlier eight either eleven even eventually every everyone except
    few finally first five following for formerly four from further furthermore get given had has have
    he hence her here hers herself him himself his how however i if in indeed initially inside instead
    into is it it's its itself just last later lastly less let like many may me meanwhile might more
    moreover most much must my near nearly neither never nevertheless next nine no none nor not note
    nothing now of off often on once one only onto or originally other others otherwise our out over
    overall own part per perhaps please previously prior rather recently same second see seven several
    shall she shortly should similarly since six so some somebody someone something sometimes soon still
    subsequently such ten than that the their them then there thereafter therefore these they third this
    those though three through throughout thus till to today together too toward towards twelve twice
    two under unlike until up upon us usually was we were what whatever when whenever where whereas
    whether which while who whoever whole whom whose why will with within without would yes yet you your
    der die das den dem des ein eine einen einem einer eines und oder aber auch als am an auf aus bei
    beim bis da damals danach dann dass denn dieser diese dieses diesen durch er es für ihr ihre im in
    ist mit nach nachdem neben nicht noch nur ob ohne schon sein seine seit sich sie sind so später
    trotz über um unter vom von vor während war waren was weil wenn wer wie wird wir wo wurde wurden zu
    zum zur zwei zwischen le la les un une des du de et ou mais dans en sur pour par avec il elle ils
    elles ce cette ces son sa ses leur au aux est sont après avant selon lors quand comme el los las una
    unos y o pero por para con su sus se del al él ella ellos este esta estos según cuando como desde
    tras fue son es il lo gli uno e ed ma nel nella di da per con suo sua questo questa dopo quando è o
    os as um uma no na nos nas do da dos das em com seu sua este esta foi depois bir bu şu ve ile için
    de da o onun daha sonra ancak fakat ise
    """
)
"""Words (folded) whose capital at the start of a sentence names nothing."""

JOINERS = word_set(
    "of de del della dello di da das do dos du des van von der den zu zur vom la le el al bin ibn"
)
"""Small words inside a name, between two capitalized ones."""

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar jänner janvier enero gennaio janeiro ocak",
            "february feb februar février febrero febbraio fevereiro şubat",
            "march mar märz mars marzo março mart",
            "april apr avril abril aprile nisan",
            "may mai mayo maggio maio mayıs",
            "june jun juni juin junio giugno junho haziran",
            "july jul juli juillet julio luglio julho temmuz",
            "august aug août agosto ağustos",
            "september sep sept septembre septiembre settembre setembro eylül",
            "october oct oktober octobre octubre ottobre outubro ekim",
            "november nov novembre noviembre novembro kasım",
            "december dec dezember décembre diciembre dicembre dezembro aralık",
        ),
        1,
    )
    for name in names.split()
}
"""From months, as written in the platform's languages, to their numbers."""

CALENDAR = frozenset(MONTHS) | word_set(
    """
    monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag
    samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche
    """
)

COUNTRIES = word_set(
    """
    afghanistan albania algeria angola argentina armenia australia austria azerbaijan bangladesh belarus
    belgium bolivia botswana brazil bulgaria cambodia cameroon canada chad chile china colombia croatia
    cuba cyprus denmark ecuador egypt england eritrea estonia ethiopia finland france gambia georgia
    germany ghana greece guatemala guinea haiti honduras hungary iceland india indonesia iran iraq
    ireland israel italy jamaica japan jordan kazakhstan kenya kosovo kuwait laos latvia lebanon liberia
    libya lithuania luxembourg madagascar malawi malaysia mali malta mexico moldova monaco mongolia
    montenegro morocco mozambique myanmar namibia nepal netherlands nicaragua niger nigeria norway oman
    pakistan panama paraguay peru philippines poland portugal qatar romania russia rwanda scotland
    senegal serbia singapore slovakia slovenia somalia spain sudan sweden switzerland syria taiwan
    tajikistan tanzania thailand togo tunisia turkey turkmenistan uganda ukraine uruguay usa uk us
    uzbekistan venezuela vietnam wales yemen zambia zimbabwe europe asia africa america deutschland
    österreich schweiz frankreich italien spanien polen schweden norwegen türkiye españa italia
    """
)

PEOPLES = word_set(
    """
    african albanian algerian american anglo arab argentine argentinian armenian asian australian
    austrian bangladeshi belgian bolivian brazilian british bulgarian cambodian cameroonian canadian
    catholic chilean chinese christian colombian croatian cuban czech danish dutch ecuadorian egyptian
    english estonian ethiopian european filipino finnish french georgian german ghanaian greek hindu
    hungarian icelandic indian indonesian iranian iraqi irish islamic israeli italian jamaican japanese
    jewish kenyan korean latin latvian lebanese lithuanian malaysian mexican moroccan muslim nepalese
    nigerian norwegian pakistani persian peruvian polish portuguese protestant roman romanian russian
    scottish serbian slovak slovenian soviet spanish sudanese swedish swiss syrian thai tunisian turkish
    ukrainian uruguayan venezuelan vietnamese welsh
    """
)

HONORIFICS = word_set(
    "mr mrs ms miss dr prof professor sir lord lady dame king queen prince princess president "
    "chancellor pope saint captain colonel general major judge justice senator rabbi father "
    "sister herr frau monsieur madame señor señora don doña signor signora"
)

ENDINGS = {
    word: label
    for label, words in {
        "ORG": "inc ltd llc gmbh ag corp corporation company co plc kg se university college "
        "institute institut school academy akademie ministry council committee commission "
        "bank party club association society foundation group records studios pictures press "
        "agency orchestra band church museum hospital library federation union league "
        "universität hochschule verein gesellschaft stiftung bundesbank université "
        "universidad società politburo parliament senate",
        "GPE": "city county province state republic kingdom district municipality village town",
        "LOC": "river lake sea ocean mountain mountains island islands peninsula valley desert bay "
        "gulf forest coast hills creek",
        "FAC": "street road avenue bridge airport station stadium tower palace castle square park "
        "theatre theater cathedral building hall house arena dam canal harbour",
        "EVENT": "war battle olympics championship championships cup festival revolution conference "
        "election games tournament",
        "LAW": "act treaty constitution convention amendment directive regulation code",
        "WORK_OF_ART": "symphony sonata concerto trilogy saga",
    }.items()
    for word in words.split()
}
"""The kind of a name, by its last word."""

GERMAN = word_set(
    "der die das und ist im von mit den dem ein eine wurde nicht sich auf für als auch des aus bei zu werden"
)
"""Words that distinguish German from other languages."""

BEFORE_NOUN = word_set(
    """
    der die das den dem des ein eine einen einem einer eines kein keine keinen keiner im am zum zur beim
    vom ins ans aufs jeder jede jedes jeden dieser diese dieses diesen diesem sein seine seinen seinem
    seiner ihr ihre ihren ihrem ihrer unser unsere mein meine dein deine viele alle beide einige mehrere
    manche welche solche zwei drei vier fünf sechs sieben acht neun zehn pro je ohne
    """
)
"""German words after which a capitalized one is a common noun, unless more capitals follow."""

NOUN_ENDINGS = (
    "ung",
    "ungen",
    "heit",
    "heiten",
    "keit",
    "keiten",
    "schaft",
    "schaften",
    "tion",
    "tionen",
    "ismus",
    "tät",
)
"""Endings of German nouns that are not names."""

SCALES = word_set(
    "hundred thousand million billion trillion mio mrd million millionen milliarde milliarden "
    "millions milliard milliards millones millón m bn k 万 億 亿"
)

UNITS = {
    word: label
    for label, words in {
        "PERCENT": "percent prozent percentage yüzde",
        "MONEY": "euro euros dollar dollars pound pounds franc francs franken yen yuan rupee rupees "
        "krona kronor krone kroner lira eur usd gbp chf jpy try cny 元 円 圓 원",
        "QUANTITY": "km² m² km/h kilometre kilometres kilometer kilometers metre metres meter meters mile "
        "miles feet foot inch inches hectare hectares acre acres kilogram kilograms kg gram "
        "grams mg ton tons tonne tonnes litre litres liter liters hour hours minute minutes "
        "second seconds stunden minuten sekunden km cm mm ml kwh mwh mw kw gb tb mb hz mhz "
        "ghz bar volt volts watt watts",
    }.items()
    for word in words.split()
}
"""Units (folded) and what is measured in them."""
