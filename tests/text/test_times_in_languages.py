"""Times in the languages in which assertions are recognised, and in Korean, mean what they mean in English."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from folklore.errors import InvalidInput
from folklore.text.dates.expressions import TimeRange, parse_time
from folklore.text.dates.translation import languages

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2025, 6, 11, 14, 35, 20, tzinfo=BERLIN)  # a Wednesday


def read(text: str) -> TimeRange:
    return parse_time(text, now=NOW.astimezone(UTC), zone=BERLIN)


MEANINGS = {
    "today": "heute; hoy; aujourd'hui; aujourd’hui; hoje; oggi; vandaag; сегодня; 今天; 今日; 오늘",
    "yesterday": "gestern; Gestern!; ayer; hier; ontem; ieri; gisteren; вчера; 昨天; 昨日; 어제",
    "the day before yesterday": (
        "vorgestern; anteayer; avant-hier; anteontem; l'altro ieri; eergisteren; позавчера; 前天; おととい; 그저께"
    ),
    "tomorrow": "morgen; mañana; demain; amanhã; domani; завтра; 明天; 明日; 내일",
    "3 days ago": (
        "vor 3 Tagen; vor drei Tagen; hace 3 días; hace tres días; il y a 3 jours; il y a trois jours; há 3 dias; "
        "3 dias atrás; 3 giorni fa; tre giorni fa; 3 dagen geleden; drie dagen geleden; 3 дня назад; три дня назад; "
        "3天前; 三天前; 3日前; 三日前; 3일 전"
    ),
    "2 weeks ago": (
        "vor zwei Wochen; hace dos semanas; il y a deux semaines; há duas semanas; due settimane fa; "
        "twee weken geleden; две недели назад; 两周前; 2週間前; 2주 전; 二个星期前"
    ),
    "a month ago": (
        "vor einem Monat; hace un mes; il y a un mois; há um mês; un mese fa; een maand geleden; месяц назад; "
        "一个月前; 1ヶ月前; 1か月前; 한 달 전"
    ),
    "5 years ago": "vor 5 Jahren; hace 5 años; il y a 5 ans; há 5 anos; 5 anni fa; 5 jaar geleden; 5 лет назад; 5年前; 5년 전",
    "last week": (
        "letzte Woche; in der letzten Woche; vorige Woche; la semana pasada; semana passada; la semaine dernière; "
        "la settimana scorsa; vorige week; на прошлой неделе; прошлая неделя; 上周; 上星期; 上个星期; 先週; 지난주; 지난 주"
    ),
    "this week": "diese Woche; esta semana; cette semaine; questa settimana; deze week; на этой неделе; 本周; 这周; 今週; 이번 주",
    "last month": (
        "letzten Monat; im letzten Monat; el mes pasado; le mois dernier; mês passado; il mese scorso; vorige maand; "
        "в прошлом месяце; 上个月; 上月; 先月; 지난달"
    ),
    "this month": "diesen Monat; este mes; ce mois; este mês; questo mese; deze maand; в этом месяце; 本月; 这个月; 今月; 이번 달",
    "last year": (
        "letztes Jahr; el año pasado; l'année dernière; l'an dernier; ano passado; l'anno scorso; vorig jaar; "
        "в прошлом году; 去年; 昨年; 작년"
    ),
    "this year": "dieses Jahr; este año; cette année; este ano; quest'anno; dit jaar; в этом году; 今年; 올해",
    "last 7 days": (
        "die letzten 7 Tage; los últimos 7 días; les 7 derniers jours; os últimos 7 dias; gli ultimi 7 giorni; "
        "de laatste 7 dagen; последние 7 дней; 最近7天; 過去7日間; 최근 7일"
    ),
    "Monday": "Montag; am Montag; el lunes; lundi; segunda-feira; lunedì; maandag; в понедельник; 周一; 星期一; 月曜日; 월요일",
    "last Friday": (
        "letzten Freitag; el viernes pasado; vendredi dernier; sexta-feira passada; venerdì scorso; vorige vrijdag; "
        "в прошлую пятницу; 上周五; 先週の金曜日; 지난 금요일"
    ),
    "March": "März; im März; en marzo; mars; en mars; março; marzo; a marzo; maart; в марте; 三月; 3月; 3월",
    "March 2024": (
        "März 2024; marzo de 2024; mars 2024; março de 2024; marzo 2024; maart 2024; март 2024; в марте 2024 года; "
        "2024年3月; 2024년 3월"
    ),
    "5 March 2024": (
        "5. März 2024; 5 de marzo de 2024; 5 mars 2024; 5 de março de 2024; 5 marzo 2024; 5 maart 2024; 5 марта 2024; "
        "5 марта 2024 года; 2024年3月5日; 2024年3月5号; 2024년 3월 5일"
    ),
    "1 May": "1. Mai; 1 de mayo; 1er mai; 1 de maio; 1 maggio; 1 mei; 1 мая; 5月1日; 5월 1일",
    "since yesterday": (
        "seit gestern; desde ayer; depuis hier; desde ontem; "
        "da ieri; sinds gisteren; со вчерашнего дня; 昨日から; 어제부터"
    ),
    "since March": "seit März; desde marzo; depuis mars; desde março; da marzo; sinds maart; с марта; 三月以来; 3月から; 3월부터",
    "until Friday": (
        "bis Freitag; hasta el viernes; jusqu'à vendredi; até sexta-feira; "
        "fino a venerdì; tot vrijdag; до пятницы; 金曜日まで; 금요일까지"
    ),
    "before 2024": "vor 2024; antes de 2024; avant 2024; prima del 2024; voor 2024; 2024年之前; 2024年以前; 2024년 이전",
    "since 2025-03-01": (
        "seit 2025-03-01; desde 2025-03-01; depuis 2025-03-01; "
        "da 2025-03-01; sinds 2025-03-01; с 2025-03-01; 从2025-03-01"
    ),
    "between Monday and yesterday": (
        "zwischen Montag und gestern; entre el lunes y ayer; entre lundi et hier; entre segunda-feira e ontem; "
        "tra lunedì e ieri; tussen maandag en gisteren; между понедельником и вчера; 从周一到昨天; 月曜日から昨日まで; "
        "월요일부터 어제까지"
    ),
}  # fmt: skip
CASES = [
    (english, text) for english, texts in MEANINGS.items() for text in texts.split("; ")
]


@pytest.mark.parametrize(("english", "text"), CASES)
def test_a_time_means_what_it_means_in_english(english: str, text: str) -> None:
    assert read(text) == read(english)


def test_the_languages_are_those_of_assertions_and_korean() -> None:
    assert [language.name for language in languages()] == [
        "german", "spanish", "french", "portuguese", "italian", "dutch", "russian", "chinese", "japanese", "korean",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "hier und da",
        "hier oben",
        "ontem e hier",
        "letzte hier",
        "mañana ayer",
        "上",
        "vor",
        "la",
        "de a",
    ],
)
def test_words_that_are_no_time_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not understood"):
        read(text)


def test_a_date_that_does_not_exist_is_refused_in_every_language() -> None:
    for text in ("31. Februar 2024", "31 de febrero de 2024", "2024年2月31日"):
        with pytest.raises(InvalidInput):
            read(text)
