"""Questions about time, and sentences about validity, in thirteen languages, with what they mean on a Monday.

`KNOWN` are those that the rules were written with; `UNSEEN` were written afterwards, before they were tried.
A row is a question, what it asks for, the first day and the day after the last one; or a sentence, the first
and the last day.
"""

from __future__ import annotations

from datetime import date

TODAY = date(2026, 11, 30)
KNOWN = """
What was the hotel limit last year?	within	2025-01-01	2026-01-01
Which prices apply since March?	since	2026-03-01
What is the newest price of the lamp?	newest
What did a hotel cost before 2024?	before		2024-01-01
Before the merger of 2024, who approved travel?	before		2024-01-01
What is the hotel limit?	today
What is the hotel limit in 2025?	within	2025-01-01	2026-01-01
How many of the 2000 employees travel?	today
How much may a hotel cost in 2023 and what does it cost now?	any
What was the price between 2023 and 2024?	within	2023-01-01	2025-01-01
price from March to May 2025	within	2025-03-01	2025-06-01
What changed in the last 6 months?	within	2026-05-30	2026-12-01
the 2025 travel policy	within	2025-01-01	2026-01-01
Does ISO 27001:2022 apply?	today
How much may I spend? 2000 euro?	today
What was allowed in March 2025?	within	2025-03-01	2025-04-01
What will a hotel cost next year?	within	2027-01-01	2028-01-01
Was durfte ein Hotel letztes Jahr kosten?	within	2025-01-01	2026-01-01
Welche Preise gelten seit März?	since	2026-03-01
Welche Preise galten vor 2024?	before		2024-01-01
Was kostet die Lampe laut neuester Preisliste?	newest
Was galt am 1. Juli 2025?	within	2025-07-01	2025-07-02
Welche Regel gilt ab 2025?	since	2025-01-01
Was ist der aktuelle Preis?	newest
Was galt vor 3 Jahren?	today
¿Cuánto costaba un hotel el año pasado?	within	2025-01-01	2026-01-01
¿Qué precios se aplican desde marzo?	since	2026-03-01
¿Cuál era el precio antes de 2024?	before		2024-01-01
¿Cuál es el precio más reciente?	newest
¿Cuál fue el límite en julio de 2025?	within	2025-07-01	2025-08-01
Сколько стоил отель в прошлом году?	within	2025-01-01	2026-01-01
Какие цены действуют с марта?	since	2026-03-01
Какая цена была до 2024 года?	before		2024-01-01
Какова последняя цена?	newest
Какая цена была в июле 2025 года?	within	2025-07-01	2025-08-01
去年酒店的限额是多少？	within	2025-01-01	2026-01-01
2024年以前的价格是多少？	before		2024-01-01
自2025年3月以来的价格？	since	2025-03-01
最新的价格是多少？	newest
2025年的差旅标准是多少？	within	2025-01-01	2026-01-01
كم كان سعر الفندق في العام الماضي؟	within	2025-01-01	2026-01-01
ما الأسعار منذ مارس؟	since	2026-03-01
كم كان السعر قبل 2024؟	before		2024-01-01
ما أحدث سعر؟	newest
كم كان السعر في عام 2025؟	within	2025-01-01	2026-01-01
पिछले साल होटल की सीमा क्या थी?	within	2025-01-01	2026-01-01
2024 से पहले कीमत क्या थी?	before		2024-01-01
मार्च से कौन सी कीमत लागू है?	since	2026-03-01
नवीनतम कीमत क्या है?	newest
2025 में कीमत क्या थी?	within	2025-01-01	2026-01-01
Geçen yıl otel sınırı neydi?	within	2025-01-01	2026-01-01
2024'ten önce fiyat neydi?	before		2024-01-01
Mart'tan beri hangi fiyat geçerli?	since	2026-03-01
En yeni fiyat nedir?	newest
2025 yılında fiyat neydi?	within	2025-01-01	2026-01-01
Giá khách sạn năm ngoái là bao nhiêu?	within	2025-01-01	2026-01-01
Giá trước năm 2024 là bao nhiêu?	before		2024-01-01
Giá từ tháng 3 năm 2025 là bao nhiêu?	since	2025-03-01
Giá mới nhất là bao nhiêu?	newest
Giá năm 2025 là bao nhiêu?	within	2025-01-01	2026-01-01
ปีที่แล้วราคาโรงแรมเท่าไร	within	2025-01-01	2026-01-01
ราคาก่อนปี 2567 เท่าไร	before		2024-01-01
ราคาตั้งแต่เดือนมีนาคม 2568 เท่าไร	since	2025-03-01
ราคาล่าสุดเท่าไร	newest
ราคาในปี 2568 เท่าไร	within	2025-01-01	2026-01-01
When may I take leave?	today
Who is responsible from May?	today
Which documents are needed for the 2024-Q3 report?	within	2024-01-01	2025-01-01
Which battery has the 2024 model?	today
Was kostet das Modell 2024?	today
Какой аккумулятор у модели 2024?	today
Does Windows run on Visual Studio 2022?	today
How many chairs are in room 2010?	today
What does RFC 1918 say?	today
What is RFC 1918?	today
Is the year 2038 problem fixed?	today
Was sagt § 2010?	today
Can I carry over vacation until March?	today
Do I have to file by May?	today
What are the opening hours in December?	today
How many days before 2027 must I ask?	today
Was gilt bis 2030?	today
Can I carry over leave to next year?	today
What is the last year of the warranty?	today
What is carried forward from the previous year?	today
Was gilt im letzten Jahr der Probezeit?	today
Who is told before the last 3 days of probation?	today
What applied as of 1 May 2025?	within	2025-05-01	2025-05-02
Which current does the charger need?	today
What is the current of the fuse?	today
What is the current document about prices?	newest
By when at the latest must I give notice?	today
Wer ist die jüngste Mitarbeiterin?	today
Какой последний пункт договора?	today
Quels prix s'appliquent depuis mars ?	since	2026-03-01
Combien coûtait un hôtel l'année dernière ?	within	2025-01-01	2026-01-01
Quel était le prix avant 2024 ?	before		2024-01-01
Quelle est la dernière version du règlement ?	newest
Quel était le plafond en juillet 2025 ?	within	2025-07-01	2025-08-01
Quelle règle s'applique depuis le 1er mai 2025 ?	since	2025-05-01
Qu'a-t-on décidé au cours des 6 derniers mois ?	within	2026-05-30	2026-12-01
Combien de jours de congé ai-je ?	today
Quanto custava um hotel no ano passado?	within	2025-01-01	2026-01-01
Quais preços valem desde março?	since	2026-03-01
Qual era o preço antes de 2024?	before		2024-01-01
Qual é o preço mais recente?	newest
Qual era o limite em julho de 2025?	within	2025-07-01	2025-08-01
Quanto costava un albergo l'anno scorso?	within	2025-01-01	2026-01-01
Quali prezzi valgono dal 1° marzo 2026?	since	2026-03-01
Qual era il prezzo prima del 2024?	before		2024-01-01
Qual è il prezzo più recente?	newest
Qual era il limite a luglio 2025?	within	2025-07-01	2025-08-01
Who wrote 1984?	today
Who is the author of 1984?	today
What is the novel 1984 about?	today
Who reads “1984”?	today
Wer schrieb 1984?	today
Qui a écrit 1984 ?	today
¿Quién escribió 1984?	today
Кто написал 1984?	today
谁写了1984？	today
Who wrote the report in 2025?	within	2025-01-01	2026-01-01
Who wrote the report of 2025?	within	2025-01-01	2026-01-01
What did a hotel cost before the merger of 2024?	before		2024-01-01
What did a hotel cost before the 2024 merger?	before		2024-01-01
What has a hotel cost since the merger of 2024?	since	2024-01-01
What did a hotel cost after the merger in 2024?	since	2025-01-01
Was kostete ein Hotel vor der Fusion 2024?	before		2024-01-01
Was kostete ein Hotel vor der Fusion von 2024?	before		2024-01-01
Was kostete ein Hotel vor der Fusion im Jahr 2024?	before		2024-01-01
Was kostet ein Hotel seit der Fusion 2024?	since	2024-01-01
Was kostete ein Hotel nach der Fusion 2024?	since	2025-01-01
Was galt vor allem 2024?	within	2024-01-01	2025-01-01
Combien coûtait un hôtel avant la fusion de 2024 ?	before		2024-01-01
Combien coûtait un hôtel avant l'acquisition de 2024 ?	before		2024-01-01
Combien coûte un hôtel depuis la fusion de 2024 ?	since	2024-01-01
Combien coûtait un hôtel après la fusion de 2024 ?	since	2025-01-01
¿Cuánto costaba un hotel antes de la fusión de 2024?	before		2024-01-01
¿Cuánto cuesta un hotel desde la fusión de 2024?	since	2024-01-01
¿Cuánto costaba un hotel después de la fusión de 2024?	since	2025-01-01
Quanto costava un hotel prima della fusione del 2024?	before		2024-01-01
Quanto costava un hotel prima dell'acquisizione del 2024?	before		2024-01-01
Quanto costava un hotel dopo la fusione del 2024?	since	2025-01-01
Quanto costa un hotel da marzo?	since	2026-03-01
Quanto costa un hotel da marzo 2025?	since	2025-03-01
Quanto costa un hotel dal 2025?	since	2025-01-01
Quanto custava um hotel antes da fusão de 2024?	before		2024-01-01
Quanto custava um hotel depois da fusão de 2024?	since	2025-01-01
Quanto custa um hotel desde a fusão de 2024?	since	2024-01-01
Quanto custa um hotel desde março?	since	2026-03-01
Сколько стоила гостиница до слияния 2024 года?	before		2024-01-01
Сколько стоила гостиница до слияния в 2024 году?	before		2024-01-01
Сколько стоила гостиница после слияния 2024 года?	since	2025-01-01
Сколько стоит гостиница с марта?	since	2026-03-01
Что действует до конца 2026 года?	today
2024年合并之前酒店多少钱？	before		2024-01-01
2024年合并之后酒店多少钱？	since	2025-01-01
2024年的政策以前是什么？	within	2024-01-01	2025-01-01
كم كان سعر الفندق قبل اندماج عام 2024؟	before		2024-01-01
كم كان سعر الفندق قبل الاندماج في 2024؟	before		2024-01-01
2024 के विलय से पहले होटल का दाम क्या था?	before		2024-01-01
2024'teki birleşmeden önce otel ne kadardı?	before		2024-01-01
2024 birleşmesinden önce otel ne kadardı?	before		2024-01-01
Giá khách sạn trước khi sáp nhập năm 2024 là bao nhiêu?	before		2024-01-01
โรงแรมราคาเท่าไรก่อนการควบรวมกิจการปี 2024	before		2024-01-01
Which contract was signed by the board in 2024?	within	2024-01-01	2025-01-01
Who wrote the report with the figures of 2024?	within	2024-01-01	2025-01-01
Was kostet ein Hotel nach der Richtlinie von 2024?	within	2024-01-01	2025-01-01
D'après la directive de 2024, combien coûte un hôtel ?	within	2024-01-01	2025-01-01
Was the rule in force before the end of 2024?	before		2025-01-01
La prima versione del 2024 che dice?	within	2024-01-01	2025-01-01
"""
UNSEEN = """
Which travel rules applied in 2022?	within	2022-01-01	2023-01-01
What was the daily allowance in June 2024?	within	2024-06-01	2024-07-01
What has the allowance been since 1 May 2025?	since	2025-05-01
Who was the managing director until 2023?	before		2024-01-01
Show me everything after 15 March 2026	since	2026-03-16
What did the contract say on 3 February 2025?	within	2025-02-03	2025-02-04
What was decided this month?	within	2026-11-01	2026-12-01
What did we agree on last week?	within	2026-11-23	2026-11-30
What is the latest version of the safety rules?	newest
How long is the notice period at present?	newest
How many days of leave do I have?	today
Which room has 2000 square meters?	today
What does clause 2024/17 say?	today
Is the 2026 budget approved?	within	2026-01-01	2027-01-01
Can I march in the parade?	today
May I bring my dog?	today
What did the lamp cost during the past 12 months?	within	2025-11-30	2026-12-01
Welche Pauschale galt im Juni 2024?	within	2024-06-01	2024-07-01
Wie hoch war die Pauschale im Jahr 2022?	within	2022-01-01	2023-01-01
Was gilt seit dem 1. Mai 2025?	since	2025-05-01
Wer war bis 2023 Geschäftsführer?	before		2024-01-01
Welche Beschlüsse gab es in den letzten 6 Monaten?	within	2026-05-30	2026-12-01
Wie hoch ist derzeit die Pauschale?	newest
Wie viele Urlaubstage habe ich?	today
Was kostete die Lampe zwischen 2022 und 2024?	within	2022-01-01	2025-01-01
Was wird die Lampe nächstes Jahr kosten?	within	2027-01-01	2028-01-01
¿Qué dieta se aplicaba en 2022?	within	2022-01-01	2023-01-01
¿Cuánto cuesta la lámpara desde el 1 de mayo de 2025?	since	2025-05-01
¿Quién fue director hasta 2023?	before		2024-01-01
¿Cuántos días de vacaciones tengo?	today
¿Qué se decidió este mes?	within	2026-11-01	2026-12-01
¿Cuál es la última versión del reglamento?	newest
Какие суточные были в 2022 году?	within	2022-01-01	2023-01-01
Что действует после 1 мая 2025 года?	since	2025-05-02
Кто был директором до 2023 года?	before		2023-01-01
Сколько дней отпуска у меня есть?	today
Сколько сейчас стоит лампа?	newest
Что решили за последние 6 месяцев?	within	2026-05-30	2026-12-01
2022年的津贴是多少？	within	2022-01-01	2023-01-01
2025年5月1日之后适用什么规定？	since	2025-05-02
我有多少天假期？	today
目前的津贴是多少？	newest
今年的预算是多少？	within	2026-01-01	2027-01-01
过去6个月有哪些决定？	within	2026-05-30	2026-12-01
ما البدل في عام 2022؟	within	2022-01-01	2023-01-01
ما القواعد بعد 1 مايو 2025؟	since	2025-05-02
كم يوم إجازة لدي؟	today
ما السعر الحالي للمصباح؟	newest
ما الميزانية هذا العام؟	within	2026-01-01	2027-01-01
2022 में भत्ता कितना था?	within	2022-01-01	2023-01-01
1 मई 2025 के बाद क्या लागू है?	since	2025-05-02
मेरे पास कितने दिन की छुट्टी है?	today
वर्तमान भत्ता कितना है?	newest
इस साल का बजट क्या है?	within	2026-01-01	2027-01-01
2022'de harcırah ne kadardı?	within	2022-01-01	2023-01-01
1 Mayıs 2025'ten sonra hangi kural geçerli?	since	2025-05-02
Kaç gün iznim var?	today
Şu anda lambanın fiyatı nedir?	newest
Bu yılki bütçe nedir?	within	2026-01-01	2027-01-01
Phụ cấp năm 2022 là bao nhiêu?	within	2022-01-01	2023-01-01
Quy định nào áp dụng sau ngày 1 tháng 5 năm 2025?	since	2025-05-02
Tôi có bao nhiêu ngày nghỉ?	today
Giá đèn hiện nay là bao nhiêu?	newest
Ngân sách năm nay là bao nhiêu?	within	2026-01-01	2027-01-01
เบี้ยเลี้ยงปี 2565 เท่าไร	within	2022-01-01	2023-01-01
หลังวันที่ 1 พฤษภาคม 2568 ใช้กฎอะไร	since	2025-05-02
ฉันมีวันลากี่วัน	today
ราคาโคมไฟปัจจุบันเท่าไร	newest
งบประมาณปีนี้เท่าไร	within	2026-01-01	2027-01-01
Quelle indemnité s'appliquait en 2022 ?	within	2022-01-01	2023-01-01
Qui était directeur jusqu'en 2023 ?	before		2024-01-01
Que prévoit le règlement à partir du 15 juin 2026 ?	since	2026-06-15
Combien coûte la lampe actuellement ?	newest
Qu'a-t-on décidé la semaine dernière ?	within	2026-11-23	2026-11-30
Quel est le budget de cette année ?	within	2026-01-01	2027-01-01
Quel ajuda de custo valia em 2022?	within	2022-01-01	2023-01-01
Quem era o diretor até 2023?	before		2024-01-01
O que foi decidido este mês?	within	2026-11-01	2026-12-01
Quantos dias de férias tenho?	today
Quale indennità valeva nel 2022?	within	2022-01-01	2023-01-01
Chi era il direttore fino al 2023?	before		2024-01-01
Che cosa è cambiato negli ultimi 6 mesi?	within	2026-05-30	2026-12-01
Quanti giorni di ferie ho?	today
Who directed 2012?	today
What did Ann read in 2024?	within	2024-01-01	2025-01-01
Chi ha scritto 1984?	today
"""
SENTENCES = """
This policy applies from 1 July 2026.	2026-07-01
Effective date: 2025-01-01. It supersedes the version of 1 March 2023.	2025-01-01
The price list is valid from 1 January 2025 until 31 December 2025.	2025-01-01	2025-12-31
Valid until 30 June 2026.		2026-06-30
The lease was signed on 3 May 2024. It expires on 31 December 2027.		2027-12-31
Diese Richtlinie gilt ab dem 1. Juli 2026 und ersetzt die Fassung vom 1. März 2023.	2026-07-01
Gültig vom 1. Januar 2025 bis 31. Dezember 2025.	2025-01-01	2025-12-31
Gültig bis 31.12.2025.		2025-12-31
Diese Ordnung tritt am 1. Januar 2025 in Kraft.	2025-01-01
Esta política es válida a partir del 1 de julio de 2026.	2026-07-01
Entra en vigor el 1 de enero de 2025 y sustituye a la versión de 3 de marzo de 2023.	2025-01-01
Vigente hasta el 31 de diciembre de 2025.		2025-12-31
Ce règlement s'applique à compter du 1er juillet 2026 et remplace la version du 1er mars 2023.	2026-07-01
Valable jusqu'au 31 décembre 2025.		2025-12-31
Esta política entra em vigor em 1 de julho de 2026.	2026-07-01
Válido até 31 de dezembro de 2025.		2025-12-31
Il presente regolamento entra in vigore il 1° luglio 2026.	2026-07-01
Valido fino al 31 dicembre 2025.		2025-12-31
Настоящие правила действуют с 1 июля 2026 года.	2026-07-01
Приказ вступает в силу с 1 января 2025 года. Действует до 31 декабря 2025 года.	2025-01-01	2025-12-31
本规定自2026年7月1日起施行。	2026-07-01
本价格表有效期至2025年12月31日。		2025-12-31
تسري هذه السياسة اعتبارا من 1 يوليو 2026.	2026-07-01
هذا النظام ساري المفعول حتى 31 ديسمبر 2025.		2025-12-31
यह नीति 1 जुलाई 2026 से लागू है।	2026-07-01
यह सूची 31 दिसंबर 2025 तक मान्य है।		2025-12-31
Bu yönerge 1 Temmuz 2026 tarihinden itibaren geçerlidir.	2026-07-01
Bu liste 31 Aralık 2025 tarihine kadar geçerlidir.		2025-12-31
Quy định này có hiệu lực từ ngày 1 tháng 7 năm 2026.	2026-07-01
Bảng giá này có hiệu lực đến ngày 31 tháng 12 năm 2025.		2025-12-31
ระเบียบนี้มีผลบังคับใช้ตั้งแต่วันที่ 1 กรกฎาคม 2569	2026-07-01
บัตรนี้หมดอายุวันที่ 31 ธันวาคม 2568		2025-12-31
The company was founded on 1 July 1998.
From 2024 we have offices in Bergen.
The offer applies from Monday.
With effect from 1 July 2026, a hotel costs 210 euro.	2026-07-01
Mit Wirkung vom 1. Juli 2026 kostet ein Hotel 210 Euro.	2026-07-01
Avec effet au 1er juillet 2026, un hôtel coûte 210 euros.	2026-07-01
Con efectos desde el 1 de julio de 2026, un hotel cuesta 210 euros.	2026-07-01
Con effetto dal 1º luglio 2026 un hotel costa 210 euro.	2026-07-01
Lease: valid from 1 July 2026 through 30 June 2027.	2026-07-01	2027-06-30
"""


def rows_of(table: str) -> list[tuple[str, ...]]:
    """The rows of a table, each with as many cells as the longest."""
    rows = [line.split("\t") for line in table.strip().splitlines()]
    width = max(map(len, rows))
    return [(*row, *[""] * (width - len(row))) for row in rows]
