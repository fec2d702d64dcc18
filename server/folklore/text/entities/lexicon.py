"""Lexicon for the entity rules: tools, organisations, and capitalised words that are no names."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _aliases(text: str) -> dict[str, str]:
    """Map every spelling to its name, from `name` and `name=alias=alias` entries separated by commas."""
    entries = (entry.strip().split("=") for entry in text.split(","))
    return {spelling: names[0] for names in entries for spelling in names}


# Tools, languages and products in any case.
TOOLS: Final = _aliases(
    "postgres=postgresql, pgvector, mysql, mariadb, sqlite, mongodb=mongo, redis, valkey, memcached, clickhouse, "
    "duckdb, dynamodb, elasticsearch, opensearch, kafka, rabbitmq, celery, bigquery, databricks, dbt, supabase, "
    "firebase, citus, neo4j, qdrant, pinecone, weaviate, milvus, pgbouncer, docker, docker compose=docker-compose, "
    "kubernetes=k8s, terraform, pulumi, ansible, nginx, haproxy, traefik, istio, grafana, prometheus, datadog, "
    "opentelemetry=otel, pagerduty, github, github actions, gitlab, bitbucket, circleci, jenkins, argocd, jira, "
    "figma, trello, python=python3, javascript=js, typescript=ts, golang, kotlin, scala, haskell, elixir, erlang, "
    "clojure, php, c++=cpp, c#=csharp, .net=dotnet, node.js=nodejs, deno, next.js=nextjs, vue.js=vue=vuejs, "
    "express.js, socket.io, angular, svelte, sveltekit, reactjs, react native, tailwind=tailwindcss, webpack, vite, "
    "eslint, axios, mongoose, jest, django, fastapi, starlette, uvicorn, gunicorn, pydantic, sqlalchemy, alembic, "
    "asyncpg, psycopg=psycopg2, numpy, pandas, pytorch, tensorflow, opencv, scikit-learn=sklearn, spacy, langchain, "
    "llamaindex, pytest, mypy, ruff, npm, pnpm, pip, pipx, conda, homebrew, maven, gradle, bazel, cmake, laravel, "
    "rails=ruby on rails, spring boot, graphql, grpc, protobuf, websocket=websockets, oauth=oauth2, webassembly=wasm, "
    "selenium, prisma, vscode=vs code=visual studio code, intellij, pycharm, vim, neovim, emacs, tmux, zsh, ubuntu, "
    "debian, linux, macos, android, ios, ec2, s3, aws=amazon web services, gcp=google cloud, azure, cloudflare, "
    "cloudwatch, vercel, netlify, heroku, chatgpt, claude, claude code, github copilot, ollama, huggingface=hugging "
    "face, llama.cpp, mcp, whatsapp, google docs, google sheets, google drive, iphone, ipad, macbook, airpods, "
    "firefox, wordpress, shopify"
)
# Tools whose names are ordinary words, so that only a capital makes them names.
CAPITALISED_TOOLS: Final = _aliases(
    "go, rust, swift, ruby, java, react, flask, express, spring, helm, cargo, yarn, bun, consul, vault, packer, chef, "
    "puppet, argo, loki, tempo, jaeger, notion, linear, cursor, copilot, gemini, git, bash, poetry, excel, zoom, "
    "outlook, slack, discord, asana, windows, chrome, safari, unity, blender, photoshop, spark, flink, hadoop, "
    "presto, trino, playwright, storybook, cypress, snowflake, airflow, cassandra, nats, sentry, vagrant, alpine"
)
ORGANISATIONS: Final = _aliases(
    "google=alphabet, microsoft, amazon, apple, meta=facebook, netflix, openai, anthropic, mistral ai=mistral, "
    "nvidia, intel, amd, ibm, oracle, salesforce, sap, adobe, spotify, uber, lyft, airbnb, stripe, paypal, visa, "
    "mastercard, linkedin, twitter, youtube, instagram, tiktok, reddit, wikipedia, mozilla, canonical, red hat, "
    "hashicorp, elastic, jetbrains, atlassian, samsung, sony, tesla, spacex, boeing, siemens, bosch, deutsche bank, "
    "nasa, unicef, unesco, ikea, walmart, nike, adidas, starbucks, disney, pixar, nintendo"
)
ORGANISATION_ENDINGS: Final = _words(
    "inc corp corporation gmbh ltd llc ag plc company co university institute foundation bank labs group team "
    "department college school hospital ministry agency union association society"
)
# Capitalised words that are no names here: times, peoples, places, and the nouns of headings and class names.
NO_NAMES: Final = _words(
    "january february march april june july august september october november december jan feb mar apr jun jul aug sep "
    "sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat "
    "sun christmas easter halloween thanksgiving english german french spanish italian dutch polish russian chinese "
    "japanese korean american british european african asian indian canadian australian mexican swedish danish "
    "norwegian finnish greek turkish arabic hebrew latin irish scottish christian muslim jewish buddhist america usa "
    "europe africa asia australia canada china germany india italy japan mexico spain sweden norway denmark finland "
    "poland russia switzerland austria netherlands belgium portugal greece turkey brazil argentina england scotland "
    "ireland wales london paris berlin munich hamburg vienna zurich madrid barcelona rome milan amsterdam brussels "
    "stockholm oslo copenhagen helsinki warsaw prague moscow tokyo beijing shanghai delhi mumbai sydney melbourne "
    "toronto vancouver boston chicago seattle dallas houston denver miami york california texas florida colorado "
    "oregon washington internet web api http sql json yaml html css url cli ui ux pr pull request issue readme todo "
    "fixme warning error true false null none promise boolean string object array map list dict int float byte class "
    "module package server client user users token message socket database schema index query cache queue service "
    "system manager controller handler model view component container cluster pod node pipeline workflow ticket task "
    "project team policy guide plan data file folder code app tests bug feature branch usage points practices tips "
    "rate content type date time day week month year world life nature art family music game games book books mr mrs "
    "ms dr prof god earth street road river lake mountain mountains park museum studios tower wars dockerfile makefile "
    "considerations improvements latency throughput memory storage logging monitoring backend frontend network disk "
    "cpu gpu ram process thread lock timeout response endpoint route router auth login password secret keys logs "
    "alerts dashboard builds ci cd docs coverage staging prod dev main master feedback progress input output results "
    "value values number name title status state default options parameter parameters arguments variables method "
    "methods imports"
)
# Words that open a sentence, or are capitalised in a heading, far more often than a name.
STARTERS: Final = _words(
    "a an the this that these those there here i we you he she it they me us him her them my our your his its their "
    "who what when where why which how whose is are was were be been am do does did have has had can could should "
    "would will may might must shall not no yes never always often sometimes usually maybe perhaps also and or but so "
    "then than because since if unless until while although though after before during once as at by for from in into "
    "of off on onto out over to under up with without within about above across against along among around behind "
    "below between beyond despite except inside like near outside per through throughout toward towards upon via "
    "every each all any both some many most much few several other another such only own same first second third last "
    "next today yesterday tomorrow now later soon recently currently finally however therefore moreover instead "
    "otherwise please thanks thank hello hi hey wow oh ok okay yeah yep sure great good nice cool awesome well sorry "
    "congrats absolutely definitely totally exactly really actually basically honestly glad hope sounds looks seems "
    "add ask avoid build call change check clean click close commit configure connect convert copy create debug "
    "decide decided delete deploy deployed disable document don't drop enable ensure export fetch find fix fixed "
    "follow get give go got handle import increase install keep know learn learned let let's load log look love make "
    "merge migrate migrated move moved need note open pass pin prefer put raise read reduce refactor release remember "
    "remove rename replace report reset restart retry return review rotate run save say see send set setup show skip "
    "start started stop store switch switched take tell test think track try turn update upgrade upgraded use used "
    "using verify wait want watch went work works write new old big small important summary context decision problem "
    "solution result example question answer reason cause step steps tip rule rules option details overview "
    "background everyone everything someone something nothing anyone nobody people just even still already one two "
    "three four five six seven eight nine ten bye aww woohoo yo whoa haha lol hmm ah ugh yay additional assuming key "
    "best common potential further define adjust validate render failed invalid received connected lots tons having "
    "i'm i've i'll i'd it's we're we've that's there's he's she's they're you're alright"
)
# Verbs that follow a person's name.
PERSON_VERBS: Final = _words(
    "said says asked asks told tells wants wanted prefers preferred likes liked loves loved thinks thought suggested "
    "suggests decided decides wrote writes reported reports joined joins left leads led owns owned agreed agrees "
    "mentioned mentions explained explains approved approves reviewed reviews believes recommended recommends knows "
    "knew works worked lives lived went came is was has had will would can and"
)
ARTICLES: Final = _words("the a an this that our your their every each any no")
# Most words with these endings are no names; the exceptions follow.
NOUN_ENDINGS: Final = (
    "tion", "sion", "ment", "ness", "ity", "ance", "ence", "ology", "ship", "able", "ible", "ism", "ware", "ized",
    "ated", "ful", "less", "ics", "hood", "ings",
)  # fmt: skip
NAMES_WITH_NOUN_ENDINGS: Final = _words("florence clarence clement constance felicity charity trinity terrance terence")
HOSTS_OF_PROJECTS: Final = _words("github.com gitlab.com bitbucket.org codeberg.org")
REPOSITORY_WORDS: Final = _words("repo repository project fork clone cloned package github gitlab")
# Prefixes of standards and products, which look like those of tickets.
NO_CODES: Final = _words("utf sha iso md gpt aes rsa covid usb mp h x q v t")
