"""Statements: sentences that say what holds from now on, found by their form in ten languages, without a model.

A form is a turn of phrase that marks something as lasting: a note, a decision, a rule, a correction, a found cause, a
preference. A question, or a sentence that says "for now", states nothing.
"""

from __future__ import annotations

import re
from itertools import pairwise

from folklore.text.words import is_question

# Characters of a text that are read, of a sentence that is quoted, and sentences of one text: what is longer is pasted.
_READ, _LONGEST, _MOST = 8_000, 400, 5
_FENCED = re.compile(r"^(```|~~~)[^\n]*\n(?:(?!\1)[^\n]*\n)*(?:\1)?|^[ \t]*>[^\n]*$", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”»)]*\s+|(?<=[。！？])|\n+")
# A few characters say much in Chinese, and nothing in English.
_LEAST, _LEAST_ASCII = 5, 10
# Words of a fact.
_LEAST_OF_FACT = 5


def _any(rows: str) -> str:
    """Return the alternatives of all rows as one."""
    return "|".join(rows.split("\n"))


# Alternatives are in the order English, German, Spanish, French, Portuguese, Italian, Dutch, Russian; on their own,
# Chinese and Japanese, where no space separates words.

# Requests to remember.
_NOTE = _any(r"""remember (?:that|this|our|we|my|it)\b|remember[:,]
(?:please |also |do )note(?! [^.]*\b(?:below|above|tell)\b)|^note(?: that|[:,])|fyi
(?:keep|bear) (?:this |that |it )?in mind|for (?:the record|future reference|your information)|heads[- ]up|be aware
just so you know|(?:don't|do not) forget that|make a note|(?:memo|reminder|important|careful|attention|caution)[:,]
(?:gotcha|beware|nb|n\.b\.|til|rule|convention)[:,]|remember (?:for|next)
(?:put|write|note|keep) (?:that|this|it) (?:down|somewhere)|for next time|note (?:for|to) (?:you|all|everyone|us)
merke?t? (?:dir|euch|es dir)|(?:beachten?|bedenken?)\b|denke?t? (?:bitte )?da?ran|nicht vergessen|vergiss nicht
(?:zur|als) (?:info|notiz|erinnerung|kenntnis)|fürs protokoll|(?:wichtig|hinweis|merke|notiz|regel)[:,]|gut zu wissen
nur damit (?:du|ihr)|(?:achtung|vorsicht|obacht)[:,!]|im (?:hinter)?kopf|rec[uo]\w*rd[ae]d?(?: que|[:,]| esto)
recuérdalo|ten(?:ed|er)? (?:en cuenta|presente)|toma nota|no (?:te )?olvides que
(?:nota|ojo|importante|regla|regra|regola)[:,]|que conste|para que lo sepas|apunta(?: que|[:,])
(?:souv[ei]\w+|rappelle|rappelez)-(?:toi|vous)|retien(?:s|ez)|retenez|n'oubliez? pas que|notez? (?:bien )?(?:que|[:,])
(?:note|attention|important|rappel|règle) ?:|gardez? (?:bien )?(?:à l'esprit|en tête)|à noter|sachez? que
pour (?:info|information|mémoire)|lembr[ae](?:-[ts]e)?(?: de)?(?: que| disso|[:,])|não (?:[st]e )?esqueças?|anot[ae]\b
(?:tenha|tem) em (?:mente|conta)|(?:atenção|lembrete)[:,]|para (?:constar|registro|sua informação)
ricorda(?:ti|tevi|te)?(?: che|[:,]| di)|tieni(?:lo)? (?:presente|conto|a mente)|(?:attenzione|promemoria)[:,]
prendi nota|nota(?:te)? che|per (?:la cronaca|tua informazione|conoscenza)|non dimenticare che|sappi che
onthoud?(?: dat| dit|[:,])|(?:let op|belangrijk|notitie|nota bene)\b|ter info|voor de (?:duidelijkheid|goede orde)
houd? (?:er )?rekening mee|houd? in gedachten|vergeet niet dat|denk er ?aan|noteer|запомни|име(?:й|йте) в виду|учти
учитывай|обрати(?:те)? внимание|на заметку|к сведению|для справки|на будущее|не (?:забудь(?:те)?,? что|забывай)
(?:важно|правило|заметка|примечание)[:,]|пометь""")
_NOTE_UNSPACED = _any(r"""记住|記住|[记記]一下|记下|记得|請記|请注意|請注意|注意[:：，]|备注|備註|提醒一下|供参考
重要[:：]|覚えて|おぼえて|メモして|メモ[:：]|注意して|ご注意|留意|念のため|参考まで|忘れないで|心に留め""")

# Decisions and causes, which count in the words of an assistant as well.
_FOUND = _any(r"""(?:we|i|you|they|team|it|been|have|was|is|it's|were) (?:\w+ ){0,2}?(?:decided|agreed|settled)\b
(?:we|i|you|they|team|have|was|were) (?:\w+ ){0,2}?(?:opted|chose|chosen)\b|^(?:decided|agreed|settled)\b|agreed with
as agreed|decision(?:[:,]| (?:is|was|from|of|by|in|at) )
let(?:'s| us) (?:all )?(?:agree|switch|move to|migrate|standardi[sz]e|adopt|settle|stick|go with|stop using)
let(?:'s| us) (?:keep )?us(?:e|ing) (?!(?:an?|the|this|that|these|those|another|some|it|red|more|less)\b)
(?:we|i)(?:'ll| will|(?: a|')re going to) (?:use|go with|stick|switch|move to|adopt|keep using|stay)|going forward
from (?:now|today|\w+day|next \w+|version \S+|v?\d\S*) on|henceforth|effective immediately
we(?:'ve| have) (?:stopped|dropped|moved|switched|migrated|retired|deprecated|removed|renamed|replaced|banned)
the reason (?:\S+ ){2,12}(?:is|was)\b|let's say (?:every|all|each|that)|as of (?:today|now|next|version|v?\d|\w+day)
starting (?:with|from|next|today|in|on|\w+day)|root cause|culprit (?:is|was)
(?:cause|reason|problem|bug|issue) (?:was|turned out)|was caused by|so that was it|the reason [^.]{3,80}(?:[:=]| was )
because [^.?]{3,80}, use |turn(?:ed|s) out (?!fine|ok|good|great|well)
(?:bug|crash|error|problem|leak|hang|delay|failure|it) (?:came|stemmed) from|that was the (?:cause|reason)
we(?:'re| are) (?:dropping|moving to|switching|retiring|migrating)|(?:we|i) learn(?:ed|t)\b
took (?:us|me) \w+ (?:hour|day|week|night|morning|afternoon)
(?:haben|hat|habe|wurde|wird|ist|sind|war) [^.]{0,90}?(?:beschlossen|entschieden|vereinbart|abgemacht|festgelegt)
(?:haben|hat|habe|wurde|wird|ist|sind|war) [^.]{0,90}?(?:geeinigt|abgesprochen|fallen ?gelassen|abgeschafft)
beschlossen[:,]|(?:entscheidung|beschluss)[^.]{0,30}:|von (?:jetzt|nun|heute) an|(?:zu)?künftig|in zukunft|fortan
lass(?:t)? uns (?!kurz|mal)[^.]{0,60}(?:umstellen|wechseln|umsteigen|nehmen|nutzen|verwenden|bleiben)
ab (?:jetzt|sofort|heute|morgen|\w+tag|mittwoch|de[mr] |nächste|version |\d)|bei uns (?:heißt|gilt|gibt|läuft|ist|wird)
(?:hier|\w+tags) wird (?:nicht|nie|nur)|(?:ursache|grund|schuld)\b[^.?]{0,60} (?:war|ist|lag)\b
(?:lag|liegt) (?:daran|am|an der)|stellte sich heraus|herausgestellt|der fehler war
(?:hemos|han|habíamos|he|se ha|fue) (?:decidido|acordado|quedado|elegido|optado|cambiado|dejado)|quedamos en
(?:decidi|acorda|opta)mos|se (?:decidió|acordó)|(?:decisión|acuerdo|decisão|decisione|accordo?)[^.]{0,30}:
(?:a partir|desde) (?:de )?(?:ahora|hoy|mañana|el |la )|en adelante|(?:cambi|pas|us|manteng)[ae]mos\b
vamos a (?:usar|cambiar|pasar|adoptar|mantener)|(?:la (?:causa|razón|culpa)|el (?:motivo|problema|error)) (?:era|fue|es)
resulta que|resultó (?:que|ser)|era por(?:que)?\b|por eso fallaba|(?:venía|vino|viene) (?:de|del|por)\b
(?:a|avons|ont|est) (?:été |tous |finalement )?(?:décidé|convenu|choisi|opté|abandonné|arrêté|adopté)|c'est décidé
(?:décision|accord)[^.]{0,30} ?:|à (?:partir|compter) d|dorénavant|désormais|à l'avenir|s'(?:avère|est avéré)
(?:passons|utilisons|gardons|restons|adoptons)\b|on (?:va (?:utiliser|passer|garder|prendre)|passe à|reste sur|part sur)
(?:la (?:cause|raison|faute)|le (?:problème|bug|coupable)) (?:était|est|c'est|venait)|c'était (?:à cause|dû|par)
ça venait|(?:decid|combin|acord|concord|opt|escolh|abandon)[aie]mos|(?:decidiu|combinou)|descobr(?:i|imos) que
acontece que|(?:foi|ficou|está) (?:decidido|combinado|acordado)|acordo[^.]{0,30}:|a partir d|de agora em diante
doravante|daqui (?:em diante|para)|vamos (?:usar|mudar|passar|trocar|adotar|manter|ficar com)
(?:a (?:causa|razão|culpa)|o (?:motivo|problema)) (?:era|foi)
(?:abbiamo|hanno|ho|si è|è stat[oa]) (?:tutti )?(?:deciso|concordato|stabilito|scelto|convenuto|abbandonato|optato)
siamo d'accordo|d'ora in|da (?:oggi|adesso|ora|domani|lunedì)|a partire da|in futuro
(?:us|pass|cambi|ten|adott|rest)i?iamo\b|(?:la (?:causa|colpa|ragione)|il (?:motivo|problema)) (?:era|è stat)
si è scoperto|è venuto fuori|salta fuori|era colpa
(?:hebben|heeft|heb|is|werd|wordt) [^.]{0,80}?(?:besloten|afgesproken|vastgelegd|gekozen|overeengekomen|afgeschaft)
(?:besluit|beslissing|afspraak)[^.]{0,30}:|laten we [^.?]{0,60}(?:overstappen|overschakelen|omzetten|gebruiken|houden)
vanaf (?:nu|vandaag|morgen|maandag|versie|de |het |volgende|\d)|voortaan|in het vervolg|(?:oorzaak|reden) (?:was|is)
lag aan|kwam door(?:dat)?|bleek\b|het probleem was|решили|договорились|условились|согласовали|выбрали|постановили
отказались от|перешли на|решено|решение:|давай(?:те)? (?:перейд|использ|переключ|остан|будем)|отныне|впредь
теперь (?:мы|все|всё|всегда|только)|в дальнейшем
с (?:этого (?:момента|дня|спринта)|сегодняшнего|завтрашнего|понедельника|версии|нового|этой недели)|причин[аоу]
оказалось|оказывается|выяснилось|дело было в|виноват""")
_FOUND_UNSPACED = _any(r"""决定|決定|[约約]定|商定|[说說]好|达成一致|[从從](?:现在|現在|今|下)|今[后後]|以[后後]|自本
改用|[换換]成|切[换換]到|[统統]一(?:用|使用|改)|原[来來]是|根本原因|原因(?:是|在于)|是因[为為]|[问問][题題]出在
[とに](?:決め|決ま|決定)|ことに(?:し|なり|なっ)|合意し|今後|これから[はも]|以後|以降|(?:今日|明日|来週)から|原因[はが]
に(?:切り替え|移行|変更)(?:し(?:ま|よ|た)|る)|のせいで|せいだった|判明し|わかった(?:の)?[はが、。]|分かりました""")

# Words of rules: adverbs that begin one, or follow a subject or a modal verb; adverbs that only follow; "every" and
# "must"; what begins a correction.
_ALWAYS = _any(r"""immer|nie|niemals|grundsätzlich|stets|siempre|nunca|jamás|toujours|jamais|sempre|altijd|nooit|всегда
никогда""")
_ONLY = _any(r"""ausschließlich|nur noch|nicht mehr|keine?[nmrs]?|sol[oa]|sólo|solamente|só|somente|apenas|soltanto
alleen|uitsluitend|niet meer|geen""")
_BEFORE = _any(r"""bitte|wir|ihr|man|muss|müssen|d[aü]rf\w*|soll\w*|werden|wird|gehör\w+|heiß\w+|us[ae]\w{0,2}
\w+[aei]mos|se|hay que|deben?|por favor,?|van?|on|nous|il faut|doi\w+|s'il te plaît|merci de|utilise[rz]?|devem|tem que
a gente|nós|\w+iamo|si|deve|devono|bisogna|per favore,?|vanno|we|wij|je|men|moet|moeten|mag|mogen|graag|gebruik
alsjeblieft|worden|wordt|мы|должн?[аоы]?|надо|нужно""")
_EVERY = _any(r"""jede[rsnm]?|alle|cada|tod[oa]s?|ningún|ninguna|cualquier|chaque|tout|toutes?|tous|aucune?|nenhuma?
qualquer|ogni|tutt[ie]|nessuna?|qualsiasi|chiunque|elke?|iedere?|geen|wie|кажд\w*|люб\w*|ни од\w*|все\w*""")
_MUST = _any(r"""muss|müssen|d[aü]rf(?:en)?|soll|sollen|braucht|deben?|tienen? que|van?|lleva|necesita|doi(?:t|vent)
faut|vont|passe|devem?|tem que|precisa|vai|vão|devono|vanno|moet|moeten|mag|mogen|hoort|krijgt|долж\w+|нужн\w+
обязан\w*""")
_WRONG = _any(r"""nein|nee|falsch|stopp|das (?:ist falsch|stimmt (?:so )?nicht|war falsch)|non?|não|fout|dat klopt niet
нет|неправильно|неверно|не так|стоп""")

_GOES_ON = r"wir|sondern|us[ai]\w*|hay que|sino|il faut|mais|mas sim|bensì|we|maar|мы|а не|надо|нужно|используй"
_INSTEAD = r"[^.?]{2,60}(?: instead of| rather than|,? (?:and )?not)\b"
_CORRECTED = r"[,:.] ?[^?]{0,80}\b(?:we|never|always|must|don't \w+|use [^.?]{2,30} instead|is only|can have|in all)\b"
_ALL = "only|whoever|each|all|new|nothing|(?:no|any|every)(?:body|one)?"
_HAS_TO = "must|needs?|ha(?:s|ve) to|may|shall|can only|(?:is|are) allowed|goes? (?:in|under|to)|lives?|belongs?"
_DOES = "is|are|has|have|gets?|uses?|carries|lives?|starts?|begins?|goes?"
_REGULARLY = "(?:every|each|at|after|once|daily|weekly)"
_WE_DO = _any(r"""use|call|name|say|spell|go with|write|put|keep|store|deploy|release|ship|support|prefer|avoid|follow
require|allow|forbid|treat|pin|tag|sign|charge|log|test|commit|merge|run|never|always|only|agree|standardi[sz]ed|dropped
switched|moved|migrated|stopped|retired|deprecated|renamed|replaced""")
# After "we" at the beginning, these report, and every other verb states a rule.
_WE_REPORT = _any(r"""need|have|had|get|got|see|saw|want|can|can't|could|couldn't|should|shouldn't|might|may|must|are
aren't|were|was|lost|lose|found|find|think|hope|ran|run into|still|just|also|tried|try|know|look|would|forgot|broke|now
miss|missed|did|didn't|haven't|seem|made|changed|added|talked|discussed|start|started|finished|left|do you|then""")
_DO_NOT = "write|use|catch|commit|push|merge|mock|add|import|log|call|put|hard-?code|rely|deploy|store|send|link|name"
_TUN = "(?:be)?nutzen|verwenden|nehmen|schreiben|nennen|liefern|unterstützen|speichern|testen|setzen|sagen|halten|legen"
_DOEN = "gebruiken|schrijven|noemen|zetten|ondersteunen|nemen|bewaren|testen|zeggen|houden|stappen"

# After "always" or "never": a fault, not a rule.
_FAILS = _any(r"""fail|crash|hang|error|empty|wrong|broken|null|\d{3}\b|time|slow|red\b|blank|lost|stuck|end|finish
return|arriv|com|load|work|start|stop|happen|got\b|get|was\b|saw|used\b|mind|been|show|log|when""")
_FEHLT = r"noch|wieder|fehl|kaputt|leer|rot|falsch|fertig|an\b|abst|ab\b|hängen|\d{3}|schief"
_FALLA = _any(r"""fall|vac|error|rojo|termin|lleg|carg|igual|sale|échou|plant|vid|pas\b|rouge|erreur|arriv|charg|le même
falh|vaz|erro|cheg|carreg|quebr|dá\b|vuot|finisc|caric|rosso|lent|fout|leeg|rood|mislukt|klaar|aan\b|traag|faalt
\d{3}""")
_AMISS = _any(r"""red|green|failing|broken|down|slow|empty|gone|wrong|missing|null|white|blank|flaky|\d{3}|an? error
nothing""")

# Rules, corrections and preferences.
_RULE = _any(
    rf"""^(?:{_ALWAYS})\b|(?:{_BEFORE})\b[^.?]{{0,50}} (?:{_ALWAYS}|{_ONLY})\b|(?:{_EVERY}) [^.?]{{2,60}} (?:{_MUST})\b
^(?:{_WRONG})\b[,:. ]+[^?]{{0,80}}\b(?:{_ALWAYS}|{_MUST}|{_GOES_ON})\b
(?:(?:^|[,;:.(]) ?|(?:that|what|as|since|because|and|but|so|here|then),? )we (?:\w+ly |also |still )?(?:{_WE_DO})\b
(?:we|i) (?:don't|do not|no longer) (?:{_WE_DO})\b
^(?:(?:ok|okay|so|yes|btw|then|and|but),? )?we (?!(?:{_WE_REPORT})\b)\w
(?:don't|do not) (?:ever )?(?:{_DO_NOT}) (?!it\b|this|that|the|these|those|any\b|anything|them)|(?:wir|ihr) (?:{_TUN})\b
(?:{_TUN}) (?:wir|ihr)\b|(?:we|wij) (?:{_DOEN})\b|(?:{_DOEN}) (?:we|wij)\b
(?:always|never(?: ever)?) (?!\w+(?<!s)s\b|\w+(?<!e)ed\b|(?:been|had|did|was|were|got|came|went|saw|seen|mind|fun)\b)\w
stop \w+ing (?!it\b|this|that|the)|, so (?:never|nothing|nobody|no|don't|always|only|please|use|keep)\b
is the (?:only )?one (?:who|that)|our [^.?]{{2,40}} (?:have|has) only|use [^.?]{{2,40}} for (?:any|every)thing
(?:each|every) [^.?]{{2,30}} (?:gets|has|carries|uses) (?!\d|(?:an? )?(?:error|empty|null|nothing|stuck|slow))
(?:resets?|wiped|purged|emptied|cleared|rebuilt|deleted|expires?|rotates?) (?:[\w']+ ){{0,3}}?{_REGULARLY}\b
is (?:spelled|spelt|written)\b|(?:may|can|is|are) [^.?]{{2,60}} only$|is (?:forbidden|mandatory|off limits)
(?:limit|maximum|minimum|quota|deadline)\b[^.?]{{0,40}} (?:is|are) \d|by (?:convention|default we|agreement)|as a rule
(?:we|i) (?:don't|do not|won't|no longer) [^.]{{2,60}} (?:any ?more|in this|here)\b
(?:{_ALL}) [^.]{{2,60}}? (?:{_HAS_TO})\b
(?:^|[:,] ?)no (?:more )?[\w -]{{2,40}} (?:without|unless|before|except|outside)\b
(?:must|may|should|shall) (?:never|always|only|not be|stay|remain)\b|our (?:convention|rule|policy|standard|style)\b
(?:has|have|takes?|allows?|accepts?|limited to) (?:at most|at least|no more than|a maximum of|up to)\b
(?:^|[,;] ?)(?:please )?(?:use|prefer|take|write|say) (?!the (?:other|first|second|same|old)\b|this|that){_INSTEAD}
not the other way a?round|that(?:'s| is) not how (?:we|i)|by \S+ we mean|(?:i|we) (?:\w+ly |always )?(?:hate|dislike)\b
^(?:no|nope|wrong|stop|correct that|that(?:'s| is) (?:wrong|not (?:right|true|correct)))\b[^.?]{{0,12}}{_CORRECTED}
[\"'“‘`][\w -]{{2,30}}[\"'”’`] (?:means|stands for|is our|is what|refers to)|stick to (?!it\b)|(?:i|we) can't stand
(?:owns|takes care of|looks after|belongs to|is (?:in charge of|(?:owned|maintained|run) by|responsible for))\b
questions go to
(?:i|we) (?:\w+ly |always )?prefer(?! (?:the (?:first|second|third|last|other|old|new|left|right)|it|this|that one)\b)\b
(?:i|we) (?:like|want) (?:my|our|all|every|to be asked|you to always|it when|that)\b|i (?:don't|never) (?:like|want)\b
i want (?!to\b|an?\b|the\b|it\b|this|that|you|some|another|more|less)[\w ]{{3,40}} (?:in|with|without|as)\b
my preference|i(?:'d| would) rather [^.?]{{3,60}} than|(?:ask|tell|show|warn) me (?:first|before|every time|each time)
when(?:ever)? you [^.?]{{3,60}}, (?:please )?(?:always )?(?:show|ask|tell|add|run|use|keep|write|explain|mention)
keine? [^.?]{{2,40}} (?:ohne|außer|vor)\b|d[aü]rf(?:en)? (?:nur|nicht|kein|nie)
(?:immer|nie|nicht) [^.?]{{2,60}} sondern\b|ist (?:verboten|pflicht)|(?:höchstens|mindestens) \d
(?:statt|anstatt|anstelle)\b|bedeutet (?:hier|bei uns)|gehört (?:zu|dem|der)\b
ich (?:bevorzuge|ziehe [^.]{{2,50}} vor|hasse)|mir (?:ist|sind) [^.]{{2,50}} lieber
(?:frag|zeig) mi(?:ch|r) (?:vorher|zuerst|erst)
ich (?:mag|möchte|will|hätte gern)[^.?]{{0,40}} (?:immer|lieber|nie|keine?[nmrs]?|zuerst|vorher)\b
wenn du [^.?]{{3,60}}, (?:dann |bitte )?(?:zeig|frag|schreib|sag|mach|nimm)|nad[ai] de [^.?]{{2,40}} s(?:in|em)\b
(?:ya )?no (?:se|usamos|hacemos|queremos|soportamos|ponemos|admitimos)\b|está (?:prohibido|permitido)
como (?:máximo|mínimo)|en (?:vez|lugar) de|sino\b|lo lleva (?:el|la)|signific?a\b
(?:prefiero|preferimos|me gustan? (?:que|más)|quiero que (?:siempre|me)|odio)\b|es (?:cosa|responsabilidad) de
cuando (?:hagas|propongas|cambies|escribas)[^.?]{{2,50}},
(?:on|nous) (?:n')?(?:utilis|écri|met|gard|support|emploi|nomm)
(?:on|nous|il|personne|^) ?(?:ne |n')[^.?]{{1,40}} (?:jamais|plus)\b|toujours (?:\w+er|\w+ez|une?|l[ea]|les|en|avec)\b
doi(?:t|vent) (?:pas|rester)|interdit|obligatoire|au (?:maximum|plus|minimum)\b|(?:au lieu|plutôt) (?:de|qu)
et (?:non|pas)\b|^non,? on\b|pas de [^.?]{{2,40}} sans\b|jamais de\b
(?:je|on|nous) (?:préf|déteste|veux (?:que|toujours)|n'aime pas|aime que)|(?:veut dire|signifie)\b|appartient à
c'est (?:l'équipe|du ressort)|quand tu [^.?]{{3,60}}, (?:montre|demande|écris)
não (?:usamos|suportamos|aceitamos|fazemos|se (?:usa|pode|deve))|não \w+mos [^.?]{{0,30}}mais\b
é (?:proibido|obrigatório)|no (?:máximo|mínimo)|(?:em vez|ao invés|no lugar) d
(?:prefiro|gosto (?:que|mais)|odeio|quero que (?:sempre|me))\b|pertence a|é responsabilidade
quando (?:você|fizer|propuser)[^.?]{{2,60}}, (?:mostre|pergunte|escreva)|^mai\b
(?:usa|si|dev\w+|bisogna|va|\w+iamo)\b[^.?]{{0,30}} mai\b|mai (?:\w+[aei]re|più|un|il|la)\b
(?:sempre|siempre|nunca|jam[aá]i?s) (?:se|us\w+|fa\w+|haga|ponga|coloque|escr\w+|hay|con|com|em|en|in|un|il|la)\b
non \w+(?:iamo|[aei]re) [^.?]{{0,30}}(?:mai|più)\b|non (?:usiamo|supportiamo|si (?:usa|può|deve|fa))
è (?:vietato|obbligatorio)|al (?:massimo|minimo)|niente [^.?]{{2,40}} (?:senza|il|di)\b|(?:invece|al posto) d
piuttosto che|(?:preferisco|preferiamo|mi piace che|voglio che (?:sempre|mi))\b|appartiene a|è responsabilità
quando (?:proponi|scrivi|cambi|fai)[^.?]{{2,50}}, (?:mostra|chiedi|scrivi)|is (?:verboten|verplicht)|hoogstens
ten (?:hoogste|minste)|in plaats van|geen [^.?]{{2,40}} zonder\b|hoort bij|betekent\b
(?:ik|wij|we) (?:heb(?:ben)?(?: [^.]{{2,30}})? liever|prefereer|wil(?:len)? (?:altijd|graag dat|niet dat)|haat)
liever [^.?]{{2,40}} dan\b|is van het team|als je [^.?]{{3,60}}, (?:laat|vraag|schrijf|toon)
всегда (?!пада|не |возвращ|получ|выда)\w|никогда не|больше не (?:использ|поддерж|дела|пиш|нуж|провер|собира)
(?:мы|у нас) (?:не )?(?:использу|пиш|назыв|храни|держ|поддержива|делаем|примен|принято)|нельзя|обязательно|запрещено
долж(?:ен|н[аоы]) (?:быть|всегда|только|оставаться|иметь|проходить)|не (?:более|менее|больше|меньше)\b|вместо|, а не\b
никаких [^.?]{{2,40}} без|(?:я|мы) (?:предпочита|ненавиж|люблю|хочу, чтобы)|мне (?:больше )?нравится|означает
лучше [^.?]{{2,40}}, чем|отвечает команда|когда [^.?]{{2,60}}, (?:покаж|спрос|пиши)
(?:always|never)\b(?!(?: \S+){{0,2}} (?:{_FAILS}))|(?<!\bi )(?<!\byou )(?<!\bwe )(?:must|has to|have to|may only)\b
(?:,| and| but) (?:not|never) (?!sure|yet|only|now|what|the same)\w
in (?:this|our) (?:repo|project|code ?base|team|company|world)|for us\b|^(?:\S+ ){{1,4}}means (?!that (?:it|the|i)\b)
please keep (?!going|it|this|that|the)|\bapproves?\b
^(?:all|every|each|any|no) (?:\S+ ){{1,6}}(?:{_DOES})\b(?! (?:{_AMISS}))
(?:is|are|gets?) (?:kept|wiped|renewed|rotated|archived|reviewed|approved|released|signed|owned|managed) \S
(?:don't|do not) (?:ever )?use (?!this|that|it\b|them)|\w+ only (?:on|by|via|through|after|before|when)\b
^(?:actually,? |no,? )?that(?:'s| is) (?:wrong|not (?:right|true|correct))\W.{{12,}}
(?:belongs?|goes?|lives?) (?:to|under|into|through|next to|via) \S
i want (?:my|our|all|\w+s) (?!you)[^.?]{{2,40}}\b(?:in|next|with|without|before|under|as)\b
(?:immer|niemals|nie|stets|grundsätzlich|ausschließlich)\b(?!(?: \S+){{0,2}} (?:{_FEHLT}))(?! noch)
gehört (?:seit|zu|jetzt)|,(?: und)? nicht (?!wahr|mehr als|so\b)\w|und nicht \w|bei uns
in (?:diesem|unserem) (?:repo|projekt|team)
(?<!ich )(?:muss|müssen|darf|dürfen) [^.?]{{3,60}}(?:bevor|wenn|bis|erst|sein|werden|bleiben|freigeben)\b
(?:siempre|nunca|jamás|sempre|mai|jamais|toujours|altijd|nooit)\b(?!(?: \S+){{0,2}} (?:{_FALLA}))
, (?:y )?no (?:en|por|con|el|la|los|un)\b|en (?:este|nuestro) (?:repo|proyecto|equipo)|je veux (?:que|des|les)\b
, (?:et )?pas (?:dans|en|par|le|la|les|un|nous)\b|dans (?:ce|notre) (?:dépôt|projet|équipe)
c'est [^.?]{{3,40}} qui (?:gère|décide|valide|s'occupe)|n(?:este|o nosso) (?:repo|projeto|time)
we want (?!to\b|you\b|it\b|this|that|an?\b|the\b)
(?:don't|do not) [^.?]{{3,60}}, (?:the|they|it|we|because|since|otherwise)\b|(?:haben|bekommen|kriegen) wir von\b
(?:ya no|já não) \w+mos\b|(?:pour|chez|dans) [^.?,]{{3,40}} on (?!a\b|va\b|peut)\w
in questo (?:repo|progetto)|nel nostro (?:team|progetto)|in (?:deze|dit|ons) (?:repo|project|team)|bij ons
(?:всегда|никогда)\b(?!(?: \S+){{0,2}} (?:пада|пуст|ошиб|красн|возвращ|завис|приход|заканч|загруж|\d{{3}}))|у нас в
в этом (?:репо|проекте)"""
)
_RULE_UNSPACED = _any(
    r"""一律|务必|務必|必须|必須|禁止|不要再|不再|永远不|永遠不|绝不|絕不|切勿|不允许|不允許|不得|最多|至少
(?:我们|我們|请|請|要|应该|應該)[^。？]{0,12}(?:总是|總是|始终|始終|都|只|从不|從不|不)
(?:我们|我們)(?:用|使用|采用|採用|叫|不用)|每(?:个|個|次)[^。？]{1,20}(?:都|要|得)|不[对對是][，,。]|错了|錯了|而不是
代替|我(?:喜欢|喜歡|更喜|偏好|习惯|習慣|希望你|不喜|不想)|没有[^。]{1,16}(?:不|就不)|指的是|意思是
(?:总是|總是|从不|從不|永远|永遠)(?!.{0,3}(?:失败|失敗|报错|報錯|错|空|超时|卡|崩))|由[^。]{1,16}(?:负责|負責)|必ず|常に
いつも[^。]{0,20}(?:して|使|く|る。)|絶対(?:に)?|決して|禁止|べき(?:です|だ|では|で)|(?:し|使わ|書か|入れ)ないで
(?:しては|使っては|ては)(?:いけ|だめ|ダメ|なら)|もう[^。]{1,24}(?:ない|ません)|(?:使い|使わ|し)ません
なければ(?:なり|なら)|(?:最大|最低|以上|以内)[^。]{0,12}(?:まで|です|とする|に)|(?:では|じゃ)なく|の代わりに|代わり、
^(?:いいえ|いや|違います|違う)|(?:の|が)(?:ほう|方)が(?:いい|良い|好き)|が好き|が嫌い|(?:して|見せて)ほしい|欲しい
(?:我々|私たち|うち|チーム)(?:は|では)|という意味|を(?:指し|意味)|(?:が|の)担当|ルール
いつも(?!.{0,6}(?:失敗|エラー|空|落ち|遅))"""
)

# Signs that a sentence without a note asks, or holds only for the moment.
_NEVER = _any(
    r"""^(?:and |so |but |ok,? |hey,? |hm+,? )?(?:can|could|would|will) (?:you|we|i)\b
^(?:does|did|should|shall (?:we|i))\b
^(?:what|why|how|where|which|who|do (?:you|we|i)|(?:is|are) (?:it|this|that|there|you|we|these))\b
for (?:now|the moment)\b|for (?:this|that) (?:one|once|time|experiment|test|demo)
(?:just|only) (?:once|this|for (?:this|now|today|me|testing))|(?:just|only) (?:playing|trying|testing)
this (?:one )?time\b|temporar|meanwhile|throw (?:it|this|that) away|so i can see|i just want|let me|later\b.{0,12}$
(?:i don't|not) (?:know|sure)\b
^(?:und |ok,? )?(?:kannst|könntest|würdest|magst|was|warum|wieso|weshalb|wie|wo|wer|welche[rsnm]?)\b|erst ?mal|vorerst
fürs erste|(?:nur|mal) (?:kurz|hier|jetzt)|diesmal|ausnahmsweise|später nochmal|provisorisch|zum (?:testen|ausprobieren)
vorläufig|im moment|gerade nur|schau [^.]{0,20}(?:morgen|später)
^(?:¿|puedes|podrías|qué|cómo|por qué|cuál|dónde|quién|cuándo)|por ahora|(?:de|por el) momento|esta vez
(?:solo|sólo) por hoy|provisional|temporalmente|mientras tanto|luego lo
^(?:peux-tu|pourrais-tu|tu peux|pourquoi|comment|quel(?:le)?s?|qu'est-ce|est-ce|où|qui|quand est)\b|je (?:ne )?sais pas
pour (?:l'instant|le moment)|(?:échoue|plante) toujours|provisoire|temporaire|juste (?:cette fois|pour)|cette fois
en attendant|^(?:pode(?:s|ria)?|você pode|por ?qu[eê]|como|qual|quais|onde|quem|quando|o que)\b|por (?:enquanto|agora)
no momento|(?:d?esta|dessa) vez|provisóri|temporári|^(?:puoi|potresti|perché|come|qual[ei]|dove|chi|cosa|che cosa)\b
per (?:ora|adesso)|per il momento|questa volta|stavolta|provvisori|temporane|nel frattempo
^(?:kun|kan|zou|wil) (?:je|jij)|^(?:waarom|hoe|wat|waar|welke?|wie is|wanneer)\b|voorlopig|voor nu|deze keer|alleen nu
tijdelijk|even (?:snel|kijken|om te)|om te testen|straks|ondertussen
^(?:можешь|можно|почему|зачем|как|какой|какая|какие|где|кто|что|когда будет)\b|пока (?:что|так)|(?:на этот|в этот) раз
временно|сейчас только|для теста|потом посмотр"""
)
_NEVER_UNSPACED = _any(
    r"""[吗嗎呢][？?。]?$|为什么|為什麼|怎么|怎麼|什么|什麼|哪[里个裡個]|能不能|可不可以|暂时|暫時|这次|這次|临时|臨時
先[试試看]|(?:か|の)[？?。]?$|なぜ|どうして|どうやって|どこ|(?:もらえ|くれ)ます|とりあえず|今回だけ|今回は|一旦|一時的
仮に|試しに|後で"""
)


def _joined(spaced: str, unspaced: str) -> re.Pattern[str]:
    return re.compile(rf"(?:(?<!\w)|(?=\W))(?:{spaced})|{unspaced}", re.IGNORECASE)


_NOTES = _joined(_NOTE, _NOTE_UNSPACED)
_FINDINGS = _joined(_FOUND, _FOUND_UNSPACED)
_RULES = _joined(_RULE, _RULE_UNSPACED)
_NO_STATEMENTS = _joined(_NEVER, _NEVER_UNSPACED)


# How a sentence about a thing begins that says what it is or does, and what is passing in such a sentence: words of the
# moment, of a fault, of a person. Both are of one language.
_FACTS = [
    (re.compile(_any(fact), re.IGNORECASE), re.compile(_any(passing), re.IGNORECASE))
    for fact, passing in (
        (  # English
            r"""^(?:btw |fyi |found it: |and |so |also )?(?:(?:the|our|an?|all|every|each|any|no|most|both|in|on
from|for|after|before) [^.?,]{2,50}?|(?!(?:add|move|let|leave|make|fix|write|show|put|use|give|set|run|call|rename
remove|delete|change|keep|check|print|create|replace|take|tell|explain|draw|what|why|how|there|it|that|this|after
before)\b)[\w -]{2,40}s) (?:is|are|has|have|comes?|goes|go|lives?|belongs?|uses?|starts?|ends?|runs?|expires?
contains?|holds?|wants?|needs?|decides?|owns?|takes?|keeps?|allows?|dies|stays?|means|gets?|may|can only
will (?:only|not)|must|changes?|drops?|closes?|bills?|empties|limits?|costs?|we) \w|\w+s (?:from|of|in|for|with
to) [^.?,]{2,40} (?:is|are|has|have|come|go|live|belong|use|need|must|may|stay|get) \w|(?:the|our|we|it|that|an?
all) [^.?]{6,80} because (?:the|our|we|it|they|of)\b|(?-i:(?!There|It|This|That|What|Why|How|Now|Here|Please|Can|No
Yes|And|But|So|If|When|Status)[A-Z][a-z]+) (?:is|has|owns|decides|wants|needs|keeps|takes|approves|drops|limits
requires|allows|bills|returns|sends|expects|accepts) \w""",
            r"""\b(?:now|still|again|today|yesterday|tonight|currently|just|suddenly|since (?:i|the|this|\d
yesterday|monday|we)|errors?|fail\w*|crash\w*|slow\w*|wrong|empty|blank|broken|[45]\d\d\w*|weird|strange|looks?
seems?|should|doesn't|does not|isn't|aren't|won't|can't|cannot|please|i|i'm|i'd|my|your|you|this|these|here|line \d+
never ends|complains?|says|reports?|customer|user|somebody|someone|too (?:big|small|long|short|often|many)|undefined
null|exception|panic|flaky|stuck|hangs?|pending|missing|red|lost|bug|issue|problem|twice|\?\?+|have a look
look at)\b|\b(?:fine|ok|okay|nothing)\b""",
        ),
        (  # German
            r"""^(?:der|die|das|unsere?r?|alle|jede[rs]?|keine?|ein|eine|bei|in|für|im|am) [^.?,]{2,60}?\b(?:ist
sind|hat|haben|wird|werden|läuft|laufen|kommt|kommen|gehört|gehören|heißt|darf|dürfen|muss|müssen|liegt|liegen|geht
gehen|braucht|bekommt|nutzt|endet|beginnt) \w""",
            r"""\b(?:jetzt|noch|wieder|heute|gestern|gerade|plötzlich|seit|fehl\w*|kaputt|leer|falsch|langsam
komisch|sieht|scheint|sollte|nicht mehr|geht nicht|bitte|ich|mir|mein\w*|du|hier|diese[rsnm]?|zeile|kunde|doppelt
rot|fertig|gut|schau\w*|sofort nach)\b""",
        ),
        (  # Spanish
            r"""^(?:el|la|los|las|nuestr[oa]s?|cada|tod[oa]s|ningún|en|para|un|una) [^.?,]{2,60}?\b(?:es|son|está
están|tiene|tienen|lleva|llevan|va|van|se \w+n?|viene|usa|usan|debe|deben|pertenece) \w""",
            r"""\b(?:ahora|todavía|otra vez|hoy|ayer|de repente|desde|falla\w*|error\w*|vací\w*|mal|lent\w*|roto
raro|parece|debería|no (?:carga|funciona|abre|sale)|por favor|mi|me|yo|tu|aquí|est[eao]s?|línea|cliente|clienta
dos veces)\b""",
        ),
        (  # French
            r"""^(?:le|la|les|nos|notre|chaque|tous|toutes|aucun|aucune|chez nous|un|une|dans
pour) [^.?,]{2,60}?\b(?:est|sont|a|ont|se|va|vont|vient|viennent|doit|doivent|passe|passent|porte|portent|utilise
garde|tient) \w""",
            r"""\b(?:maintenant|encore|aujourd'hui|hier|soudain|depuis|erreur\w*|échou\w*|vide|faux|lent\w*|cassé\w*
bizarre|semble|devrait|ne (?:marche|charge|fonctionne|s'ouvre)|s'il te plaît|je|j'|mon|ma|mes|tu|ici|ce|cet|cette
ces|ligne|client|deux fois|regarde)\b""",
        ),
        (  # Portuguese
            r"""^(?:o|a|os|as|noss[oa]s?|cada|tod[oa]s|nenhum|em|para|um|uma) [^.?,]{2,60}?\b(?:é|são|está|ficam?
tem|têm|vai|vão|vem|usa|usam|deve|devem|leva|pertence) \w""",
            r"""\b(?:agora|ainda|de novo|hoje|ontem|de repente|desde|falh\w*|erro\w*|vazi\w*|errad\w*|lent\w*
quebr\w*|parece|deveria|não (?:abre|carrega|funciona)|por favor|eu|meu|minha|você|aqui|est[ea]s?|ess[ea]s?|linha
cliente)\b""",
        ),
        (  # Italian
            r"""^(?:il|lo|la|i|gli|le|nostr[oaie]|questo modulo|ogni|tutt[ei]|nessun[oa]?|in|per|un
una) [^.?,]{2,60}?\b(?:è|sono|ha|hanno|va|vanno|viene|vengono|usa|usano|deve|devono|si|lo mantiene|appartiene) \w""",
            r"""\b(?:adesso|ora|ancora|oggi|ieri|improvvisamente|da (?:ieri|oggi)|fallisc\w*|error\w*|vuot\w*
sbagliat\w*|lent\w*|rott\w*|strano|sembra|dovrebbe|non (?:si apre|carica|funziona)|per favore|io|mio|mia|tu|qui
quest[ae]|riga|cliente)\b""",
        ),
        (  # Dutch
            r"""^(?:de|het|een|onze|elke|elk|alle|geen|bij|in|op|voor|wij|we) [^.?,]{2,60}?\b(?:is|zijn|heeft|hebben
wordt|worden|komt|komen|gaat|gaan|hoort|horen|moet|moeten|mag|mogen|loopt|draait|schrijven|gebruikt) \w""",
            r"""\b(?:nu|nog|weer|vandaag|gisteren|plotseling|sinds|fout\w*|leeg|kapot|traag|raar|lijkt|zou
laadt niet|werkt niet|niet meer|alsjeblieft|ik|mijn|je|jij|hier|dit|deze|dat|regel|klant|goed|klaar)\b""",
        ),
    )
]


def statements(text: str, *, of_person: bool = True) -> tuple[str, ...]:
    """Return the sentences of a text that state something lasting, at most five, in order.

    Of the words of an assistant only decisions and causes count: it explains rules all the time.
    """
    written = _FENCED.sub("\n", text[:_READ].replace("\u2019", "'") + "\n")
    sentences = list(dict.fromkeys(part.strip(" \t-*•") for part in _SENTENCE.split(written)))
    stated: dict[str, None] = {}
    for before, sentence in pairwise(["", *sentences]):
        if _states(sentence, of_person):  # "Write that down." is about the sentence before it
            stated |= dict.fromkeys([sentence if _is_long(_NOTES.sub("", sentence)) else before])
    return tuple(sentence for sentence in stated if 0 < len(sentence) <= _LONGEST)[:_MOST]


def _is_long(text: str) -> bool:
    return len(text) >= (_LEAST_ASCII if text.isascii() else _LEAST)


def _states(sentence: str, of_person: bool) -> bool:
    if not _is_long(sentence) or len(sentence) > _LONGEST or is_question(sentence):
        return False
    if of_person and _NOTES.search(sentence):
        return True
    if _NO_STATEMENTS.search(sentence):
        return False
    if _FINDINGS.search(sentence) is not None:
        return True
    return of_person and (_RULES.search(sentence) is not None or _tells(sentence))


def _tells(sentence: str) -> bool:
    """Return whether a sentence has the form of a fact in some language."""
    if len(sentence.split()) < _LEAST_OF_FACT:
        return False
    return any(fact.match(sentence) and not passing.search(sentence) for fact, passing in _FACTS)
