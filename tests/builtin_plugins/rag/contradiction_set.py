"""Pairs of documents, and which of their sentences contradict each other.

Written by hand after texts that organizations have: rules, contracts, manuals, minutes, reports, in nine
languages. A block begins with the names of two documents; then come a sentence of the one and, on the line
below, one of the other. `!`: whoever reads both would say that one of them must be wrong or out of date. `=`:
they would not, as the sentences say the same, or are about different things. The labels were set before any
rule was tried on them. `KNOWN` came first. `UNSEEN` was written once the rules were, and tried once: 22 of
the 27 that were reported were right, 22 of 24 were reported. Numbers of sections and figures were then left
out.
"""

from __future__ import annotations

from typing import NamedTuple

KNOWN = """
travel-rules-2025.md | travel-rules-2026.md
! A hotel in Oslo may cost up to 185 euro per night.
  A hotel in Oslo may cost up to 210 euro per night.
= Trains are booked in second class by everybody.
  Trains are booked in second class by everybody.
! Receipts must be handed in within 14 days after the trip.
  Receipts must be handed in within 30 days after the trip.
= These rules are valid from 1 January 2025 for all offices.
  These rules are valid from 1 January 2026 for all offices.
= The budget for travel in 2025 is 40,000 euro in total.
  The budget for travel in 2026 is 55,000 euro in total.

handbook.md | handbook (1).md
! Visitors may not enter the workshop without a guide.
  Visitors may enter the workshop without a guide.
! The office opens at 8:30 on every working day.
  The office opens at 9:00 on every working day.
= Page 3 of the handbook of the whole company.
  Page 4 of the handbook of the whole company.

contract-17.md | contract-18.md
= The notice period of this contract is 3 months.
  The notice period of this contract is 6 months.
= The monthly rent is 1,200 euro without heating.
  The monthly rent is 1,450 euro without heating.

minutes-2026-03-04.md | minutes-2026-04-08.md
= The meeting was attended by 12 members of the board.
  The meeting was attended by 9 members of the board.
= The next meeting takes place on 8 April 2026 in Bergen.
  The next meeting takes place on 6 May 2026 in Bergen.

norway/allowances.md | sweden/allowances.md
= The daily allowance for meals is 42 euro for everybody.
  The daily allowance for meals is 39 euro for everybody.

drills.md | drills-new.md
= Drill 7 is checked every 3 years by the fire brigade.
  Drill 7 is checked every 3 years by the fire brigade.
= Drill 8 is checked every 4 years by the fire brigade.
  Drill 9 is checked every 2 years by the fire brigade.
! The alarm in the hall is tested every 6 months.
  The alarm in the hall is tested every 12 months.

urlaub.md | urlaub-neu.md
! Der Anspruch auf Urlaub beträgt 28 Tage im Jahr.
  Der Anspruch auf Urlaub beträgt 30 Tage im Jahr.
! Der Antrag muss nicht schriftlich gestellt werden.
  Der Antrag muss schriftlich gestellt werden.
= Stand dieser Regelung ist der 3. März 2025 im ganzen Haus.
  Stand dieser Regelung ist der 4. Mai 2026 im ganzen Haus.

jahresbericht-2024.md | jahresbericht-2025.md
= Der Verein hatte am Ende des Jahres 412 Mitglieder.
  Der Verein hatte am Ende des Jahres 437 Mitglieder.

conges.md | conges-v2.md
! La demande doit être déposée 15 jours avant le départ.
  La demande doit être déposée 30 jours avant le départ.
= Les congés sont accordés par le chef de service.
  Les congés sont accordés par le chef de service.

gastos.md | gastos-final.md
! El importe máximo de una cena es de 35 euros por persona.
  El importe máximo de una cena es de 45 euros por persona.

price-list.md | price-list-2026.md
! The lamp for the desk costs 49 euro with tax.
  The lamp for the desk costs 55 euro with tax.
= The lamp for the wall costs 70 euro with tax.
  The lamp for the hall costs 80 euro with tax.

machine-A200.md | machine-A300.md
= The oil has to be changed after 500 hours of work.
  The oil has to be changed after 800 hours of work.
"""

UNSEEN = """
data-protection.md | data-protection-rev2.md
! Applications are deleted 6 months after the decision.
  Applications are deleted 3 months after the decision.
! The data protection officer must be asked within 72 hours.
  The data protection officer must be asked within 24 hours.
= Videos of the entrance are kept for 48 hours at most.
  Videos of the entrance are kept for 48 hours at most.
= This text was last reviewed on 2 May 2025 by the officer.
  This text was last reviewed on 9 June 2026 by the officer.

onboarding.md | onboarding-2026.md
! New colleagues get their laptop on the 1st working day.
  New colleagues get their laptop on the 3rd working day.
! The trial period of new colleagues lasts 6 months.
  The trial period of new colleagues lasts 3 months.
= In 2025 the introduction takes place in room 12 in Bergen.
  In 2026 the introduction takes place in room 14 in Bergen.

invoice-2026-001.md | invoice-2026-002.md
= The total amount of this invoice is 1,280 euro with tax.
  The total amount of this invoice is 940 euro with tax.
= Please pay within 14 days without any deduction.
  Please pay within 30 days without any deduction.

newsletter-2026-01.md | newsletter-2026-02.md
= The canteen is closed on 12 January for repairs.
  The canteen is closed on 9 February for repairs.

lease-bergen.md | lease-oslo.md
= The rent must be paid by the 3rd day of each month.
  The rent must be paid by the 5th day of each month.

canteen.md | canteen-old.md
! Lunch is served from 11:30 until 14:00 in the canteen.
  Lunch is served from 12:00 until 14:00 in the canteen.
! Guests do not pay for coffee in the canteen.
  Guests pay for coffee in the canteen.
= A menu with soup costs 7.50 euro for everybody.
  A menu with salad costs 8.20 euro for everybody.

safety/ladders.md | safety/archive-2024/ladders.md
= A ladder may be used up to a height of 5 metres.
  A ladder may be used up to a height of 7 metres.

vacation.md | vacation-draft.md
! Remaining days expire on 31 March of the following year.
  Remaining days expire on 30 June of the following year.
! Employees over fifty have 2 more days of vacation.
  Employees over fifty have 3 more days of vacation.
= Holidays are planned together in the team in January.
  Holidays are planned together in the team in December.

it-regeln.md | it-regeln-2026.md
! Ein Passwort muss mindestens 10 Zeichen haben.
  Ein Passwort muss mindestens 14 Zeichen haben.
! Private Geräte dürfen im Netz nicht benutzt werden.
  Private Geräte dürfen im Netz benutzt werden.
! Sicherungen werden 30 Tage lang aufbewahrt.
  Sicherungen werden 90 Tage lang aufbewahrt.
= Die Leitung der Abteilung hat Frau Berg seit 2019.
  Die Leitung der Abteilung hat Frau Lund seit 2024.

protokoll-2026-05-04.md | protokoll-2026-06-08.md
= An der Sitzung nahmen 14 Personen teil.
  An der Sitzung nahmen 11 Personen teil.
= Der Antrag wurde mit 9 Stimmen angenommen.
  Der Antrag wurde mit 7 Stimmen angenommen.

reisekosten.md | reisekosten-kopie.md
! Für das eigene Auto werden 30 Cent je Kilometer gezahlt.
  Für das eigene Auto werden 35 Cent je Kilometer gezahlt.
= Abschnitt 4 gilt für alle Reisen im Inland.
  Abschnitt 5 gilt für alle Reisen im Inland.

reglement-interieur.md | reglement-interieur-2026.md
! Les bureaux ferment à 18 heures tous les jours ouvrables.
  Les bureaux ferment à 19 heures tous les jours ouvrables.
! Il est permis de fumer sur la terrasse du bâtiment.
  Il n'est pas permis de fumer sur la terrasse du bâtiment.
= Le badge est remis le premier jour par l'accueil.
  Le badge est remis le premier jour par l'accueil.

teletrabajo.md | teletrabajo-v3.md
! Se puede trabajar desde casa 2 días por semana.
  Se puede trabajar desde casa 3 días por semana.
! El empleado no recibe una silla de oficina.
  El empleado recibe una silla de oficina.

regole-viaggi.md | regole-viaggi-2026.md
! Un albergo a Roma può costare al massimo 140 euro.
  Un albergo a Roma può costare al massimo 165 euro.

reisregels.md | reisregels-v2.md
! Een hotel in Utrecht mag ten hoogste 130 euro kosten.
  Een hotel in Utrecht mag ten hoogste 150 euro kosten.

ferie.md | ferie-2026.md
! Alle ansatte har rett til 25 dager ferie i året.
  Alle ansatte har rett til 30 dager ferie i året.

regulamin.md | regulamin-2026.md
! Pracownik ma prawo do 20 dni urlopu w roku.
  Pracownik ma prawo do 26 dni urlopu w roku.

viagens.md | viagens-v2.md
! O valor máximo do jantar é de 25 euros por pessoa.
  O valor máximo do jantar é de 30 euros por pessoa.

spec-pump.md | spec-pump-v2.md
! The pump must be able to deliver 40 litres per minute.
  The pump must be able to deliver 55 litres per minute.
= Figure 2 shows the pump with its closed housing.
  Figure 3 shows the pump with its closed housing.
= See section 4.1 for the connection of the motor.
  See section 4.2 for the connection of the motor.
= The serial number of the tested pump was 10442.
  The serial number of the tested pump was 10987.

release-notes.md | release-notes-2026.md
= This release fixes 12 errors in the import of files.
  This release fixes 31 errors in the import of files.

survey-results-2024.md | survey-results-2025.md
= In all, 61 percent of the members answered the survey.
  In all, 55 percent of the members answered the survey.

faq.md | faq-new.md
! A forgotten card costs 15 euro to replace.
  A forgotten card costs 20 euro to replace.
! The help desk can be reached until 17:00 by phone.
  The help desk can be reached until 18:30 by phone.
= Call 2100 if the printer on the ground floor is broken.
  Call 2100 if the printer on the ground floor is broken.
"""


IN_OTHER_WORDS = """
travel-rules.md | staff-handbook.md
! A hotel in Bergen may cost up to 185 euro per night.
  For an overnight stay in Bergen we refund at most 210 euro.
! Receipts must be handed in within 14 days after the trip.
  You have 30 days after returning to submit your receipts.
= Meals on a journey are refunded up to 40 euro a day.
  The canteen offers lunch for 8 euro every day.

leave.md | welcome.md
! Every employee has 25 days of leave a year.
  New colleagues can look forward to 28 days of holiday each year.
= Leave must be requested 4 weeks in advance.
  The first 4 weeks are spent in the training centre.

safety.md | workshop.md
! Helmets must be worn everywhere in the hall.
  In the hall nobody has to wear a helmet.
! The alarm in the hall is tested every 6 months.
  Once every 12 months we test the hall's alarm.
= Gloves are changed after 40 hours of use.
  The lathe is oiled after 40 hours of use, the drill after 60.

passwords.md | it-start.md
! A password needs at least 10 characters.
  Passwords shorter than 14 characters are not accepted.
! Backups are kept for 30 days.
  We delete every backup after 90 days.
= Private phones may be used in the guest network.
  The guest network reaches 50 metres from the entrance.

opening.md | visitors.md
! The office opens at 8:30 on working days.
  On working days our doors open at 9:00.
! Visitors may park in the yard.
  There is no parking for visitors in the yard.
= The museum next door opens at 10:00 on working days.
  The library in Bergen closes at 18:00 on working days.

urlaub.md | willkommen.md
! Der Anspruch auf Urlaub beträgt 28 Tage im Jahr.
  Alle Beschäftigten bekommen jährlich 30 Urlaubstage.
! Die Probezeit dauert 6 Monate.
  Nach einer Probezeit von 3 Monaten wird man fest angestellt.
= Das Büro in Bergen hat 12 Plätze.
  Das Büro in Oslo hat 20 Plätze.

conges.md | accueil.md
! La demande de congé doit être déposée 15 jours avant le départ.
  Il faut demander ses congés au moins 30 jours à l'avance.
= Le parking de Bergen compte 40 places.
  Le parking d'Oslo compte 60 places.
"""
"""Sentences in other words; not alike enough for rules."""


class PairOfDocuments(NamedTuple):
    """Two documents by name, with the sentences of each, and those that contradict each other."""

    names: tuple[str, str]
    sentences: tuple[list[str], list[str]]
    contradicting: set[tuple[str, str]]


def pairs(written: str) -> list[PairOfDocuments]:
    """The pairs of one of the sets."""
    found = []
    for block in written.strip().split("\n\n"):
        first, *lines = block.splitlines()
        name, other_name = first.split(" | ")
        pair = PairOfDocuments((name, other_name), ([], []), set())
        for one, other in zip(lines[::2], lines[1::2], strict=True):
            pair.sentences[0].append(one[2:])
            pair.sentences[1].append(other[2:])
            if one[0] == "!":
                pair.contradicting.add((one[2:], other[2:]))
        found.append(pair)
    return found
