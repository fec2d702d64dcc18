"""Key formats: the forms that issuers give their keys and tokens, one row each, and the search for them.

Prefixes and lengths are published by the issuers and collected by secret scanners (named in docs/explanation/security.md). Lengths
are lower bounds, because issuers lengthen their keys. Secrets without a form of their own, such as passwords, are found
by their context.
"""

# ruff: noqa: E501 - one row per format

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from folklore.text.secrets.values import Secret, is_mixed, is_placeholder_key, is_sample_token


@dataclass(frozen=True, slots=True)
class Rule:
    """A key format.

    `hints`: lower-case texts; every text with such a key contains at least one of them. `prefix` begins with literal
    text where possible, which `re` finds fast. `body` must follow the prefix; None for a PEM block. `mixed`: the body
    must have letters and digits, for prefixes that are words too. A key begins at the beginning of a word, or inside a
    word if `within_word`.
    """

    kind: str
    hints: tuple[str, ...]
    prefix: re.Pattern[str]
    body: re.Pattern[str] | None
    mixed: bool = False
    within_word: bool = False


def _rule(
    kind: str, hints: str, prefix: str, body: str | None, *, mixed: bool = False, within_word: bool = False
) -> Rule:
    pattern = None if body is None else re.compile(body)
    return Rule(kind, tuple(hints.lower().split()), re.compile(prefix), pattern, mixed, within_word)


_URLSAFE = "[A-Za-z0-9_-]"
_ALNUM = "[A-Za-z0-9]"
_HEX = "[A-Fa-f0-9]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"

RULES: tuple[Rule, ...] = (
    # Clouds and hosting
    _rule("AWS access key", "akia asia abia acca", "(?:AKIA|ASIA|ABIA|ACCA)", "[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _rule("AWS access key", "a3t", "A3T", "[A-Z0-9]{17}(?![A-Za-z0-9])"),
    _rule("AWS Bedrock key", "absk bedrock-api-key-", "(?:ABSK|bedrock-api-key-)", "[A-Za-z0-9+/]{80,}={0,2}"),
    _rule("AWS MWS token", "amzn.mws.", r"amzn\.mws\.", _UUID),
    _rule("Google API key", "aiza", "AIza", f"{_URLSAFE}{{35,}}"),
    _rule("Google API key", "aq.", r"AQ\.", f"{_URLSAFE}{{40,}}", mixed=True),
    _rule("Google OAuth secret", "gocspx-", "GOCSPX-", f"{_URLSAFE}{{20,}}"),
    _rule("Google OAuth token", "ya29.", r"ya29\.", f"{_URLSAFE}{{20,}}"),
    _rule("Google OAuth token", "1//0", "1//0", f"{_URLSAFE}{{30,}}"),
    _rule("Azure storage key", "accountkey", "(?i:AccountKey)", r"\s*=\s*[A-Za-z0-9+/%]{40,}={0,2}"),
    _rule("Azure access key", "sharedaccess", "SharedAccess(?:Key|Signature)", r"\s*=\s*[A-Za-z0-9+/%]{30,}={0,2}"),
    _rule("Azure shared access signature", "sig=", "sig=", "[A-Za-z0-9%+/_-]{40,}={0,2}"),
    _rule("Azure client secret", "q~", r"(?=[A-Za-z0-9_~.-]{3}[0-9]Q~)", r"[A-Za-z0-9_~.-]{6}[A-Za-z0-9_~.-]{28,36}"),
    _rule("Azure key", "jqqj9", f"(?={_ALNUM}{{52}}JQQJ9)", f"{_ALNUM}{{76,90}}"),
    _rule("Alibaba Cloud key", "ltai", "LTAI", f"{_ALNUM}{{12,30}}(?![A-Za-z0-9])", mixed=True),
    _rule("Tencent Cloud key", "akid", "AKID", f"{_ALNUM}{{28,}}", mixed=True),
    _rule("Yandex Cloud key", "aqvn ajej y0_ t1.", r"(?:AQVN|y0_|t1\.)", f"{_URLSAFE}{{35,}}", mixed=True),
    _rule("DigitalOcean token", "doo_v1_ dop_v1_ dor_v1_", "do[opr]_v1_", f"{_HEX}{{32,}}"),
    _rule("Heroku key", "hrku-", "HRKU-", f"{_URLSAFE}{{30,}}"),
    _rule("Cloudflare key", "v1.0-", r"v1\.0-", f"{_HEX}{{24}}-{_HEX}{{100,}}"),
    _rule("Cloudflare token", "cfut_ cfat_ cfk_", "cf(?:ut|at|k)_", f"{_ALNUM}{{30,}}"),
    _rule("Fly.io token", "fo1_ fm1_ fm2_ fm1r_ fm1a_", "(?:fo1|fm1[ar]?|fm2)_", r"[A-Za-z0-9_+/=-]{40,}"),
    _rule("Vercel token", "vcp_ vci_ vca_ vcr_ vck_ vercel_", "(?:vc[piark]|vercel(?:_blob_rw)?)_", f"{_ALNUM}{{24,}}", mixed=True),
    _rule("Netlify token", "nfp_ nfc_ nfo_ nfu_", "nf[pcou]_", f"{_ALNUM}{{30,}}"),
    _rule("Render key", "rnd_", "rnd_", f"{_ALNUM}{{24,}}", mixed=True),
    _rule("Scaleway key", "scw", "SCW", "[A-Z0-9]{17}(?![A-Za-z0-9])", mixed=True),
    # Code and packages
    _rule("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", "gh[pousr]_", f"{_ALNUM}{{20,}}(?:[._-]{_ALNUM}+)*"),
    _rule("GitHub token", "github_pat_", "github_pat_", "[A-Za-z0-9_]{30,}"),
    _rule("GitLab token", "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt-", "gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-", r"[A-Za-z0-9_.-]{18,}"),
    _rule("GitLab token", "gr1348941 _gitlab_session", "(?:GR1348941|_gitlab_session=)", f"{_URLSAFE}{{20,}}"),
    _rule("Bitbucket or Atlassian token", "atbb atatt3 atctt3 atstt3", "(?:ATBB|A(?:TA|TC|TS)TT3)", r"[A-Za-z0-9_=-]{24,}"),
    _rule("npm token", "npm_", "npm_", f"{_ALNUM}{{30,}}"),
    _rule("npm token", "_authtoken", "_authToken", r"\s*=\s*[\"']?[A-Za-z0-9_=+/.-]{20,}"),
    _rule("PyPI token", "pypi-", "pypi-", f"{_URLSAFE}{{40,}}"),
    _rule("RubyGems key", "rubygems_", "rubygems_", f"{_HEX}{{32,}}"),
    _rule("crates.io token", "cio", "cio", f"{_ALNUM}{{32}}(?![A-Za-z0-9])", mixed=True),
    _rule("NuGet key", "oy2", "oy2", "[a-z0-9]{43}(?![A-Za-z0-9])"),
    _rule("Clojars token", "clojars_", "CLOJARS_", f"{_ALNUM}{{40,}}"),
    _rule("Docker token", "dckr_", "dckr_(?:pat|oat)_", f"{_URLSAFE}{{20,}}"),
    _rule("Artifactory key", "akcp", "AKCp", f"{_ALNUM}{{50,}}"),
    _rule("Artifactory token", "cmvmd", "cmVmd", f"{_ALNUM}{{50,}}"),
    _rule("CircleCI token", "ccipat_ cciprj_", "CCI(?:PAT|PRJ)_", f"{_ALNUM}+_{_HEX}{{20,}}"),
    _rule("Buildkite token", "bkua_ bkaj_", "bk(?:ua|aj)_", f"{_HEX}{{32,}}"),
    _rule("Sonar token", "squ_ sqp_ sqa_", "sq[upa]_", f"{_HEX}{{32,}}"),
    _rule("Sourcegraph token", "sgp_ slk_", "(?:sgp|slk)_", "[A-Za-z0-9_]{36,}", mixed=True),
    _rule("Postman key", "pmak-", "PMAK-", f"{_HEX}{{20,}}-{_HEX}{{20,}}"),
    _rule("Terraform token", "atlasv1", rf"(?={_ALNUM}{{14}}\.atlasv1\.)", rf"{_ALNUM}{{14}}\.atlasv1\.[A-Za-z0-9_=-]{{40,}}"),
    _rule("Pulumi token", "pul-", "pul-", f"{_HEX}{{40}}"),
    _rule("Octopus key", "api-", "API-", "[A-Z0-9]{26,}(?![A-Za-z0-9])", mixed=True),
    _rule("Infracost key", "ico-", "ico-", f"{_ALNUM}{{32}}", mixed=True),
    # Language models
    _rule("Anthropic key", "sk-ant-", "sk-ant-", f"{_URLSAFE}{{24,}}", mixed=True),
    _rule("OpenRouter key", "sk-or-", "sk-or-", f"{_URLSAFE}{{24,}}", mixed=True),
    _rule("OpenAI key", "sk-", "sk-(?!ecdsa-|ssh-)", f"(?:(?:proj|svcacct|admin|None)-)?{_URLSAFE}{{20,}}", mixed=True),
    _rule("OpenAI key", "sess-", "sess-", f"{_ALNUM}{{32,}}", mixed=True),
    _rule("Hugging Face token", "hf_ api_org_", "(?:hf|api_org)_", f"{_ALNUM}{{30,}}"),
    _rule("Replicate token", "r8_", "r8_", f"{_ALNUM}{{30,}}"),
    _rule("Groq key", "gsk_", "gsk_", f"{_ALNUM}{{40,}}"),
    _rule("xAI key", "xai-", "xai-", f"{_ALNUM}{{40,}}"),
    _rule("Perplexity key", "pplx-", "pplx-", f"{_ALNUM}{{40,}}"),
    _rule("NVIDIA key", "nvapi-", "nvapi-", f"{_URLSAFE}{{40,}}"),
    _rule("Cerebras key", "csk-", "csk-", f"{_ALNUM}{{40,}}"),
    _rule("Pinecone key", "pcsk_", "pcsk_", "[A-Za-z0-9_]{30,}", mixed=True),
    _rule("Tavily key", "tvly-", "tvly-", f"{_URLSAFE}{{20,}}", mixed=True),
    _rule("Firecrawl key", "fc-", "fc-", f"{_HEX}{{32}}(?![A-Za-z0-9])"),
    _rule("Voyage key", "pa-", "pa-", f"{_URLSAFE}{{40,}}", mixed=True),
    _rule("Fireworks key", "fw_", "(?<![A-Za-z0-9]-)fw_", f"{_ALNUM}{{20,}}", mixed=True),
    _rule("LangSmith key", "lsv2_ ls__", "(?:lsv2_(?:pt|sk)|ls_)_", "[A-Za-z0-9_]{30,}", mixed=True),
    _rule("Databricks token", "dapi", "dapi", f"{_HEX}{{32}}(?:-[0-9])?"),
    _rule("ElevenLabs key", "sk_", "sk_", f"{_HEX}{{40,}}"),
    _rule("Weights & Biases key", "wandb_v1_", "wandb_v1_", f"{_URLSAFE}{{30,}}"),
    # Payments
    _rule("Stripe key", "sk_ rk_", "[sr]k_(?:live|test|prod|org)_", "[A-Za-z0-9_]{10,}"),
    _rule("webhook signing secret", "whsec_", "whsec_", "[A-Za-z0-9+/=]{24,}"),
    _rule("Square token", "sq0", "sq0[a-z]{3}-", f"{_URLSAFE}{{20,}}"),
    _rule("Square token", "eaaa", "EAAA", "[A-Za-z0-9+=_-]{56,}", mixed=True),
    _rule("PayPal or Braintree token", "access_token$", r"access_token\$(?:production|sandbox)\$", "[A-Za-z0-9$]{30,}"),
    _rule("Shopify token", "shpat_ shpca_ shppa_ shpss_ shpua_ shptka_", "shp(?:at|ca|pa|ss|ua|tka)_", f"{_HEX}{{30,}}"),
    _rule("Plaid token", "access-", "access-(?:sandbox|development|production)-", _UUID),
    _rule("Flutterwave key", "flwseck", "FLWSECK(?:_TEST)?-", "[A-Za-z0-9]{12,}"),
    _rule("EasyPost key", "ezak eztk", "EZ[AT]K", f"{_ALNUM}{{50,}}"),
    _rule("Razorpay key", "rzp_", "rzp_(?:live|test)_", f"{_ALNUM}{{14,}}"),
    _rule("Duffel token", "duffel_", "duffel_(?:test|live)_", f"{_URLSAFE}{{30,}}"),
    # Communication and marketing
    _rule("Slack token", "xox", "xox[abceoprs](?:\\.xox[a-z])?-", "[A-Za-z0-9-]{10,}", mixed=True),
    _rule("Slack token", "xapp- xwfp-", "(?:xapp|xwfp)-", "[A-Za-z0-9-]{20,}", mixed=True),
    _rule("Slack webhook", "hooks.slack.com", r"hooks\.slack(?:-gov)?\.com", "/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}", mixed=True),
    _rule("Discord webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/", f"[0-9]{{15,}}/{_URLSAFE}{{40,}}"),
    _rule("Teams webhook", "webhook.office.com", r"webhook\.office\.com", r"/webhookb2/[A-Za-z0-9@/-]{60,}"),
    _rule("Zapier webhook", "hooks.zapier.com", r"hooks\.zapier\.com/hooks/catch", "/[0-9]+/[a-z0-9]{6,}", mixed=True),
    _rule("Discord token", ".g .x .y .z", rf"[MNO](?={_URLSAFE}{{22,28}}\.{_URLSAFE}{{6,7}}\.)", rf"{_URLSAFE}{{22,28}}\.{_URLSAFE}{{6,7}}\.{_URLSAFE}{{27,}}", mixed=True),
    _rule("Telegram bot token", ":aa", "(?=[0-9]{8,10}:AA)", f"[0-9]{{8,10}}:{_URLSAFE}{{33,}}"),
    _rule("Twilio key", "sk", "SK(?=[0-9a-f]{32})", "[0-9a-f]{32}(?![A-Za-z0-9])"),
    _rule("SendGrid key", "sg.", r"SG\.", rf"{_URLSAFE}{{14,}}\.{_URLSAFE}{{14,}}"),
    _rule("Mailgun key", "key- pubkey-", "key-", f"{_HEX}{{32}}(?![A-Za-z0-9])"),
    _rule("Mailgun key", "mailgun", f"(?={_HEX}{{32}}-{_HEX}{{8}}-{_HEX}{{8}})", f"{_HEX}{{32}}-{_HEX}{{8}}-{_HEX}{{8}}(?![A-Za-z0-9-])"),
    _rule("Mailchimp key", "-us1 -us2 -us3 -us4 -us5 -us6 -us7 -us8 -us9", f"(?={_HEX}{{32}}-us[0-9])", f"{_HEX}{{32}}-us[0-9]{{1,2}}"),
    _rule("Brevo key", "xkeysib- xsmtpsib-", "x(?:key|smtp)sib-", f"{_HEX}{{40,}}"),
    _rule("Resend key", "re_", "re_", f"{_ALNUM}{{6,12}}_{_ALNUM}{{18,}}", mixed=True),
    _rule("Facebook token", "eaa", "EAA", f"(?=[A-Z0-9]{{0,40}}[a-z]){_ALNUM}{{60,}}", mixed=True),
    _rule("Twitter token", "aaaaaaaaaaaaaaaaaaaa", "A{20}", "[A-Za-z0-9%+/=]{40,}", mixed=True),
    _rule("LinkedIn secret", "wpl_ap1.", r"WPL_AP1\.", "[A-Za-z0-9.=+/]{16,}"),
    _rule("HubSpot token", "pat-", "pat-(?:na|eu|ap)[0-9]-", _UUID),
    _rule("Intercom token", "dg9rojo", "dG9rOj", "[A-Za-z0-9+/=_-]{40,}"),
    _rule("Typeform token", "tfp_", "tfp_", "[A-Za-z0-9_.=-]{40,}"),
    # Data, operations, office
    _rule("Vault token", "hvs. hvb. hvr.", r"hv[sbr]\.", f"{_URLSAFE}{{20,}}"),
    _rule("Vault token", "vault", r"s\.", f"{_ALNUM}{{24}}(?![A-Za-z0-9])", mixed=True),
    _rule("Doppler token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)(?:\.[a-z0-9_-]+)?\.", f"{_ALNUM}{{36,}}"),
    _rule("1Password key", "a3-", "A3-", "[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    _rule("1Password token", "ops_eyj", "ops_eyJ", "[A-Za-z0-9+/_=-]{100,}"),
    _rule("Infisical token", "st.", r"st\.", rf"{_HEX}{{24}}\.{_HEX}{{32}}"),
    _rule("age secret key", "age-secret-key-", "AGE-SECRET-KEY-(?:PQ-)?1", "[A-Z0-9]{40,}"),
    _rule("Grafana token", "glsa_ glc_", "gl(?:sa|c)_", "[A-Za-z0-9_+/=]{30,}", mixed=True),
    _rule("Grafana key", "eyjrijoi", "eyJrIjoi", "[A-Za-z0-9+/=]{40,}"),
    _rule("New Relic key", "nrak- nrii- nrra- nrjs- nral", "NR(?:AK|II|RA|JS|AA|BR|SP)-", f"{_URLSAFE}{{17,}}", mixed=True),
    _rule("New Relic licence key", "nral", f"(?={_HEX}{{36}}NRAL|eu01xx{_HEX}{{30}})", f"{_ALNUM}{{40}}"),
    _rule("Sentry token", "sntrys_ sntryu_ sntrya_", "sntry[sua]_", "[A-Za-z0-9_+/=-]{40,}"),
    _rule("Dynatrace token", "dt0", r"dt0[a-z][0-9]{2}\.", r"[A-Z0-9]{24}\.[A-Z0-9]{40,}"),
    _rule("Sentry DSN", "sentry dsn", r"https?://(?=[0-9a-f]{32}@)", r"[0-9a-f]{32}@[\w.-]+(?::[0-9]+)?/[0-9]+"),
    _rule("PostHog key", "phx_ phs_", "ph[xs]_", f"{_ALNUM}{{30,}}"),
    _rule("Supabase key", "sbp_ sb_secret_", "(?:sbp|sb_secret)_", "[A-Za-z0-9_-]{20,}", mixed=True),
    _rule("PlanetScale token", "pscale_", "pscale_(?:tkn|pw|oauth|otkn)_", r"[A-Za-z0-9_=.-]{30,}"),
    _rule("Neon key", "npg_ napi_", "(?:npg_|napi_(?=[A-Za-z0-9]{40}))", f"{_ALNUM}{{12,}}", mixed=True),
    _rule("ClickHouse key", "4b1d", "4b1d", f"{_ALNUM}{{38}}(?![A-Za-z0-9])", mixed=True),
    _rule("Prefect key", "pnu_ pnb_", "pn[ub]_", f"{_ALNUM}{{36}}"),
    _rule("Tailscale key", "tskey-", "tskey-", f"[a-z]+-{_ALNUM}{{8,}}(?:-{_ALNUM}{{16,}})?", mixed=True),
    _rule("OpenShift token", "sha256~", "sha256~", f"{_URLSAFE}{{40,}}"),
    _rule("Kubernetes bootstrap token", "kubeadm", r"--token[ =](?=[a-z0-9]{6}\.[a-z0-9]{16})", r"[a-z0-9]{6}\.[a-z0-9]{16}(?![A-Za-z0-9.])", mixed=True),
    _rule("Linear key", "lin_", "lin_(?:api|oauth)_", f"{_ALNUM}{{32,}}"),
    _rule("Notion token", "ntn_ secret_", "(?:ntn|secret)_", f"{_ALNUM}{{40,}}", mixed=True),
    _rule("Figma token", "figd_ figo_", "fig[do]_", f"{_URLSAFE}{{30,}}"),
    _rule("Airtable token", "pat", rf"pat(?={_ALNUM}{{14}}\.{_HEX})", rf"{_ALNUM}{{14}}\.{_HEX}{{40,}}"),
    _rule("Asana token", "1/1 2/1", "(?=[12]/[0-9]{10,}[:/])", f"[12]/[0-9]{{10,}}(?:/[0-9]{{10,}})?:{_HEX}{{32}}"),
    _rule("Contentful token", "cfpat-", "CFPAT-", f"{_URLSAFE}{{40,}}"),
    _rule("Dropbox token", "sl.", r"sl\.", f"(?:u\\.)?{_URLSAFE}{{100,}}"),
    _rule("Adobe secret", "p8e-", "p8e-", f"{_URLSAFE}{{30,}}"),
    _rule("Frame.io token", "fio-u-", "fio-u-", "[A-Za-z0-9_=-]{60,}"),
    _rule("Harness key", "pat.", r"pat\.", rf"{_URLSAFE}{{22}}\.{_ALNUM}{{24}}\.{_ALNUM}{{20}}"),
    _rule("ReadMe key", "rdme_", "rdme_", "[a-z0-9]{60,}"),
    _rule("Scalingo token", "tk-us-", "tk-us-", f"{_URLSAFE}{{40,}}", mixed=True),
    _rule("SettleMint token", "sm_aat_ sm_pat_ sm_sat_", "sm_[aps]at_", f"{_ALNUM}{{16,}}"),
    _rule("MaxMind key", "_mmk", f"(?={_ALNUM}{{6}}_{_ALNUM}{{29}}_mmk)", f"{_ALNUM}{{6}}_{_ALNUM}{{29}}_mmk"),
    _rule("Folklore token", "fk_", "fk_", f"{_URLSAFE}{{40,}}", mixed=True),
    # Several issuers
    _rule("signed address", "x-amz-signature x-goog-signature", "X-(?:Amz|Goog)-Signature(?:=|%3D)", f"{_HEX}{{64,}}"),
    _rule("signed address", "signature=", "(?<=[?&;])Signature=", "[A-Za-z0-9%+/_~-]{20,}={0,2}", mixed=True),
    _rule("password hash", "$2a$ $2b$ $2x$ $2y$", r"\$2[abxy]\$", r"[0-9]{2}\$[./A-Za-z0-9]{53}"),
    _rule("password hash", "$1$ $5$ $6$ $7$ $y$ $apr1$", r"\$(?:1|5|6|7|y|apr1)\$", r"(?:rounds=[0-9]+\$)?[./A-Za-z0-9]{1,60}\$(?:[./A-Za-z0-9]{1,60}\$)?[./A-Za-z0-9]{22,}"),
    _rule("password hash", "$argon2", r"\$argon2(?:id|i|d)\$", r"(?:v=[0-9]+\$)?m=[0-9,tmp=]+\$[A-Za-z0-9+/]{8,}\$[A-Za-z0-9+/]{16,}"),
    _rule("password hash", "{sha} {ssha}", r"\{S?SHA\}", "[A-Za-z0-9+/]{27,}={0,2}"),
    _rule("npm token", "_auth", "_auth", r"\s*=\s*[\"']?[A-Za-z0-9+/]{16,}={0,2}(?![A-Za-z0-9])", mixed=True),
    _rule("JSON Web Token", "eyj", "eyJ", r"[A-Za-z0-9_+/=-]{8,}\.(?:eyJ[A-Za-z0-9_+/=-]{6,}(?:\.[A-Za-z0-9_+/=-]*)?|[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"),
    _rule("JSON Web Token", "zxlk", "ZXlK", "[A-Za-z0-9+/=_-]{60,}"),
    _rule("API key", "_live_ _test_ _prod_ _secret_ _sk_ _pat_ _key_ _token_ _api_", "(?<!pk)(?<!pub)_(?:live|test|prod|secret|sk|pat|key|token|api)_", f"{_ALNUM}{{20,}}", mixed=True, within_word=True),
    _rule("private key", "-----begin", r"-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}", None),
    _rule("private key", "private-lines", "Private-Lines", r": *[0-9]+\s+[A-Za-z0-9+/=\s]{40,}"),
    _rule("private key", "b3blbnnzac1rzxktdje", "b3BlbnNzaC1rZXktdjE", "[A-Za-z0-9+/=]{60,}"),
    _rule("private key", "ibadanbgkqhkig9w0baqefaasc", "MII[A-Za-z0-9+/]{1,4}IBADANBgkqhkiG9w0BAQEFAASC", "[A-Za-z0-9+/=]{40,}"),
    _rule("private key", "mighageambmgbyqgsm49ageg", "MIGHAgEAMBMGByqGSM49AgEG", "[A-Za-z0-9+/=]{40,}"),
)  # fmt: skip

# Hints with the positions of their rules, grouped by a sign that they contain. Most sentences lack most of the signs:
# skipping their groups takes 8 instead of 15 microseconds for 130 characters.
_HINTS: dict[str, tuple[tuple[str, int], ...]] = {
    sign: tuple(
        (hint, position)
        for position, rule in enumerate(RULES)
        for hint in rule.hints
        if next((mark for mark in "_-." if mark in hint), "") == sign
    )
    for sign in ("_", "-", ".", "")
}

# A line break within a key: the break, the indentation or quotation of the next line, an operator between two literals.
_BREAK = re.compile(
    r"(?:[\"'`][ \t]*(?:[\\+.&]|\|\|)?|[ \t]*\\)?[ \t]*(?:\r?\n|(?:\\r)?\\n)[ \t]*(?:[>|#*+.]{1,2}[ \t]*|//[ \t]*)?[\"'`]?"
    r"|[\"'`][ \t]*(?:\+|\.\.|\|\||&)?[ \t]*[\"'`]"
)
_BREAK_SIGNS = ("\n", "\\n", '"', "'", "`")
_MAX_BREAKS = 8
_MAX_BROKEN_LENGTH = 600  # of a key that continues in other lines; a PEM block has no limit
_ESCAPE = re.compile(r"(?:%[0-9A-Fa-f]{2}|\\[nrt])\Z")

# The headers and the body of a PEM block, with real or escaped line breaks, and its last line.
_PEM_BODY = re.compile(r"(?:[A-Za-z0-9+/=]|\s|\\+[nrt]|[\"'`,+>|#*]|[A-Z][A-Za-z-]{2,30}: [^\n\\]{0,200})*", re.ASCII)
_PEM_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,60}-{4,5}")
_MIN_PEM_LENGTH = 40


def find_keys(text: str, lower: str) -> Iterator[Secret]:
    """Yield every key that has a form of its own; `lower` is the text in lower case. Linear in the text."""
    positions = {
        position for sign, hints in _HINTS.items() if sign in lower for hint, position in hints if hint in lower
    }
    for position in positions:
        yield from _keys_of(RULES[position], text)


def _keys_of(rule: Rule, text: str) -> Iterator[Secret]:
    read = 0  # text before this position is not read again, which keeps the time linear
    for prefix in rule.prefix.finditer(text):
        if prefix.start() >= read and rule.within_word == _is_within_word(text, prefix.start()):
            end, is_key = _pem_block(text, prefix.end()) if rule.body is None else _key(rule, text, prefix.end())
            read = max(read, end)
            if is_key:
                yield Secret(rule.kind, prefix.start(), end)


def _is_within_word(text: str, start: int) -> bool:
    """Return whether a letter or digit precedes that is not the end of an escape: `%3D` in a URL, `\\n` in JSON."""
    if not start or not (text[start - 1].isascii() and text[start - 1].isalnum()):
        return False
    return _ESCAPE.search(text, max(0, start - 3), start) is None


def _key(rule: Rule, text: str, start: int) -> tuple[int, bool]:
    """Return the end of the possible key that follows a prefix, and whether it is a key.

    A key may be broken over several lines or string literals.
    """
    assert rule.body is not None
    if body := rule.body.match(text, start):
        return body.end(), _is_key(rule, body.group())
    if any(text.find(sign, start, start + _MAX_BROKEN_LENGTH) >= 0 for sign in _BREAK_SIGNS):
        for breaks in range(1, _MAX_BREAKS + 1):
            joined, positions, removed = _without_breaks(text, start, breaks)
            body = rule.body.match(joined)
            if body and body.group():
                return positions[body.end() - 1] + 1, _is_key(rule, body.group())
            if removed < breaks:
                break
    return start, False


def _is_key(rule: Rule, body: str) -> bool:
    if is_placeholder_key(body) or (rule.kind == "JSON Web Token" and is_sample_token(body)):
        return False
    return not rule.mixed or is_mixed(body) or (body.isupper() and not body.isalpha())


def _without_breaks(text: str, start: int, breaks: int) -> tuple[str, Sequence[int], int]:
    """Return the text after `start` without its first breaks, the position of each character, and the breaks removed."""
    rest = text[start : start + _MAX_BROKEN_LENGTH]
    kept: list[str] = []
    positions: list[int] = []
    end = removed = 0
    for gap in islice(_BREAK.finditer(rest), breaks):
        kept.append(rest[end : gap.start()])
        positions += range(start + end, start + gap.start())
        end, removed = gap.end(), removed + 1
    kept.append(rest[end:])
    positions += range(start + end, start + len(rest))
    return "".join(kept), positions, removed


def _pem_block(text: str, start: int) -> tuple[int, bool]:
    """Return the end of a PEM block, and whether it has more than its first line."""
    body = _PEM_BODY.match(text, start)
    end = body.end() if body else start
    too_short = sum(map(str.isalnum, text[start : min(end, start + 400)])) < _MIN_PEM_LENGTH
    if too_short or is_placeholder_key(text[start : min(end, start + 200)]):
        return start, False
    last = _PEM_END.match(text, end)
    return last.end() if last else end, True
