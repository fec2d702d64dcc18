"""Sentences of developers without secrets: hashes, UUIDs, base64, placeholders, settings, talk of passwords."""

# ruff: noqa: E501 - one sentence per line

from __future__ import annotations

SENTENCES: tuple[str, ...] = tuple(
    line
    for line in r"""
The regression came in with commit 3f2a9c8d1e4b5a6f7c8d9e0f1a2b3c4d5e6f7a8b and was reverted in 9b1d2e3.
Pin the base image to python@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.
The empty file has MD5 d41d8cd98f00b204e9800998ecf8427e and SHA-1 da39a3ee5e6b4b0d3255bfef95601890afd80709.
Order 550e8400-e29b-41d4-a716-446655440000 failed because the tenant 7c9e6679-7425-40de-944b-e07fc1f90ae7 was locked.
ETag: "33a64df551425fcc55e4d42a148795d9f25f89d4" is weak on the CDN.
package-lock has "integrity": "sha512-9NET910DNaIPngYnLLPeg+Ogzqsi9uM4mSboU5y6p8S5DzMTVEsJZrawi+BoDNUVBa2DhJqQYUFvMDfgU062LQ=="
Subresource integrity: sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC
go.sum: github.com/pkg/errors v0.9.1 h1:FEBLx1zS214owpjy7qsBeixbURkuhQAwrK5UwLGTwt4=
The favicon is inlined as data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk
The payload eyJ0ZXN0IjogMX0= decodes to a JSON object with one field.
base64 of "hello world" is aGVsbG8gd29ybGQ= and of "foo" is Zm9v.
The trace id is 4bf92f3577b34da6a3ce929d0e0e4736 and the span id is 00f067aa0ba902b7.
traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
Set OPENAI_API_KEY in the environment; the client reads it from there.
Use <YOUR_API_KEY> as a placeholder in the docs.
export GITHUB_TOKEN=<your-token> before running the release script.
Authorization: Bearer <token> is required on every call to /v1/orders.
Authorization: Bearer $TOKEN works in the shell examples.
Authorization: Bearer {access_token} is how the client template looks.
curl -H "Authorization: Bearer ${API_TOKEN}" https://api.acme.io/v1/health
curl -u "$USER:$PASSWORD" https://ci.acme.io/job/build
Passwords must be at least 12 characters, with a digit and a symbol.
The password must be changed every 90 days by policy.
password: must not be empty
The password is hashed with argon2id before it is stored.
The password is stored as a bcrypt hash with cost 12.
Password is required when the SSO flag is off.
password = os.environ["DB_PASSWORD"]
password = getpass.getpass("Password: ")
password = settings.database.password
password=None means that the socket is trusted.
def login(user: str, password: str) -> Session: ...
password: str | None = None
password: SecretStr = Field(...)
const password = process.env.DB_PASSWORD
let token = localStorage.getItem("token")
token = request.headers.get("Authorization")
token = await fetch_token(client)
self.token = token
api_key: str = Field(default="", repr=False)
api_key=config.api_key is passed to the constructor.
api_key = "YOUR_API_KEY"
API_KEY=xxxxxxxxxxxxxxxxxxxxxxxx
secret: ${{ secrets.DEPLOY_KEY }}
secretName: payments-tls is mounted at /etc/tls.
secretKeyRef: name: payments-db-credentials, key: password
secret_key_base is read from credentials.yml.enc.
password: "{{ vault_db_password }}"
password: !vault |
db_password = var.db_password
password = data.aws_secretsmanager_secret_version.db.secret_string
The secret is in arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf.
DATABASE_URL=postgresql://user:password@localhost:5432/app
The default DSN is postgres://postgres:postgres@localhost:5432/postgres in docker compose.
postgresql://$PGUSER:$PGPASSWORD@db/app is expanded by the entrypoint.
redis://:<password>@cache:6379/0 is the form of the URL.
https://user:***@git.acme.io/repo.git is how the log prints it.
amqp://guest:guest@localhost:5672/ is the broker of the tests.
git clone git@github.com:acme/api.git and run make.
ssh://git@gitlab.acme.io:2222/team/repo.git uses port 2222.
http://localhost:3000/@vite/client answers 404 behind the proxy.
https://unpkg.com/lodash@4.17.21/lodash.js is pinned.
https://cdn.acme.io:8443/assets/app@2.1.0.js is cached for a year.
Mail goes to ops@acme.io: ask alice@acme.io for access.
The token limit is 8192 and max_tokens=4096 for summaries.
tokenizer: cl100k_base, 1.3 tokens a word on average.
next_page_token: CAUQAA== marks that there is more.
pageToken=EAAaBlBUOkNBbw is opaque to clients.
continuation_token: 6f1ed002ab5595859014ebf0951522d9 pages through the list.
The CSRF token is compared in constant time.
csrf_token = 8c2f1b9d3e4a5f6071829304a5b6c7d8
A token expires after 15 minutes, a refresh token after 30 days.
Token rotation: access token 15m, refresh token 30d, session 12h.
The idempotency token is a UUID such as 16fd2706-8baf-433b-82eb-8c7fada847da.
cancellation_token: CancellationToken is passed down to every call.
token_type: bearer, expires_in: 3600
grant_type=client_credentials with scope read:orders
We verify JWTs with RS256; the header starts with eyJ because it is JSON.
A JWT is header.payload.signature, each base64url.
The key id kid=2024-05-a selects the public key from /.well-known/jwks.json.
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GVJM ops@acme
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7v3cJ5n2yq8Qm0w1F3h6y2p9x is the deploy machine's public key.
The host fingerprint is SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8.
-----BEGIN CERTIFICATE----- starts a certificate, which is public.
-----BEGIN PUBLIC KEY----- MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYD54V/vp+54P9DXarYqx4MPcm+HK
Files beginning with -----BEGIN RSA PRIVATE KEY----- are refused by the hook.
Convert it with openssl pkcs8 -topk8 -in key.pem -out key.p8 -nocrypt.
The private key lives in /etc/ssl/private/api.key, mode 0600.
Stripe's publishable key begins with pk_live_ and may be in the page.
Keys that begin with sk_live_ must never be in the page.
GitHub tokens begin with ghp_ and have 36 characters after that.
The prefix AKIA marks a long-term access key, ASIA a temporary one.
OpenAI keys start with sk-, project keys with sk-proj-.
Use sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx in examples.
The scanner knows xoxb- and xoxp- as Slack tokens.
hf_transfer speeds up downloads from the hub; set HF_HUB_ENABLE_HF_TRANSFER=1.
npm_config_registry and npm_package_version are set by npm itself.
pypi-attestations verifies provenance of a wheel.
sk-learn pipelines are pickled with joblib 1.4.
key-value stores such as etcd keep a revision per key.
glpat- is the prefix of a GitLab personal access token.
dapi is the prefix of Databricks tokens and also of our data API.
The re_path route and re_compile helper moved to utils.
The partition key is tenant_id and the sort key is created_at#order_id.
The cache key is orders:v2:550e8400-e29b-41d4-a716-446655440000:summary.
primary_key=id, foreign_key=user_id, on delete cascade.
S3 object key: exports/2025/03/18/part-00017-c000.snappy.parquet
The API key is checked in middleware/auth.py before the router runs.
The API key must be sent in the header X-Api-Key.
X-Api-Key: <key> is compared with hmac.compare_digest.
API keys are shown once and stored as SHA-256.
Rotate the API key with `acme keys rotate --name ci`.
api_key_id: 42 refers to the row, not to the key.
access_key_id is logged, the secret access key never is.
AWS_PROFILE=staging aws s3 ls s3://acme-exports/2025/
aws sts assume-role --role-arn arn:aws:iam::123456789012:role/deploy --role-session-name ci
AWS documents AKIAIOSFODNN7EXAMPLE and wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY as examples.
The account 123456789012 owns the bucket, region eu-central-1.
project acme-prod-417208, cluster gke_acme-prod-417208_europe-west1_main
Azure subscription 6f1ed002-ab55-4585-9014-ebf0951522d9, resource group rg-payments-prod
tenant_id: 72f988bf-86f1-41af-91ab-2d7cd011db47, client_id: 04b07795-8ddb-461a-bbee-02f9e1bf7b46
client_id=1234567890-abc.apps.googleusercontent.com is public.
OAuth client secret is kept in Vault under secret/payments/oauth.
client_secret: from Vault, path kv/payments/oauth
The webhook secret comes from the dashboard and goes into Kubernetes.
kubectl create secret generic db --from-literal=password="$DB_PASSWORD"
docker login -u ci --password-stdin registry.acme.io
psql "host=db user=app password=$PGPASSWORD dbname=app"
mysql -u root -p opens a prompt for it.
sshpass -e reads it from the environment.
The error was: FATAL: password authentication failed for user "app"
ERROR 1045 (28000): Access denied for user 'root'@'localhost' (using password: YES)
Login failed: invalid username or password (attempt 3 of 5).
Reset the password from Settings, then Security, then Change password.
Password reset links are valid for 30 minutes.
The password field has type=password and autocomplete="current-password".
<input type="password" name="password" placeholder="Password">
"password": "string", "minLength": 8 is what the schema says.
{"username": "string", "password": "string"} is the request body.
"password": {"type": "string", "format": "password"}
password_min_length: 12, password_max_age_days: 90
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
password_hash VARCHAR(255) NOT NULL holds $2b$12$ strings.
passwordEncoder = new BCryptPasswordEncoder(12)
if password == confirm_password: save()
assert verify_password(plain, hashed) is True
The user's passphrase unlocks the vault; we never see it.
1Password and Bitwarden are both allowed; LastPass is not.
Basic authentication is off; use OAuth 2.0.
Basic auth is only allowed from the internal network.
The Basic plan has 5 seats, the Team plan 25.
Bearer tokens are opaque to the client.
The bearer of the badge may enter server room 2.
Cookie: session=<opaque> is HttpOnly and SameSite=Lax.
Set-Cookie: theme=dark; Path=/; Max-Age=31536000
auth: none, tls: required, cipher ECDHE-RSA-AES256-GCM-SHA384
The digest algorithm is SHA-256, encoded as 64 hex digits.
Checksum mismatch: expected 5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03.
docker pull ghcr.io/acme/api@sha256:0d6b2b9b3a5f4c6e7d8f9a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d
Layer 8f4e5d6c7b8a exists, pushing manifest 1.24.3-alpine.
git bisect blamed 1c3d5e7f9a0b2c4d6e8f0a1b2c3d4e5f6a7b8c9d, "Batch the inserts".
index 83db48f..bf269f4 100644 of the diff shows the mode.
Jira ticket PROJ-1234 and error ERR_TOKEN_77 belong together.
TypeError: Cannot read properties of undefined (reading 'token')
SyntaxError: Unexpected token < in JSON at position 0
Unexpected token 'export' means that the file is not a module.
The lexer yields token=IDENT, value="password".
Grammar: secret ::= letter { letter | digit }
ed25519 signatures are 64 bytes, x25519 keys 32.
AES-256-GCM with a 96-bit nonce, key from HKDF-SHA256.
argon2id: memory 64 MiB, iterations 3, parallelism 4
The encryption key is derived with HKDF from the master key in KMS.
encryption_key: alias/payments-prod in KMS
signing_key = load_pem_private_key(data, password=None)
The public key is 04678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb6.
Genesis block 000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f
Contract 0xdAC17F958D2ee523a2206206994597C13D831ec7 is USDT on mainnet.
Transaction 0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060 succeeded.
ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi holds the picture.
ULID 01ARZ3NDEKTSV4RRFFQ69G5FAV sorts by time, KSUID 0ujtsYcgvSTl8PAuAdqWYSMnLOv too.
nanoid V1StGXR8_Z5jdHi6B-myT is 21 characters long.
Mongo ObjectId 507f1f77bcf86cd799439011 carries a timestamp.
Snowflake 175928847299117063 was the message's id.
The build number is 20250318.4 and the image tag main-3f2a9c8-1742295000.
Sentry DSN https://examplePublicKey@o0.ingest.sentry.io/0 is public by design.
Google Analytics G-XXXXXXXXXX and GTM-ABC1234 are in the template.
reCAPTCHA's documented test key stays in the fixtures.
user-agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/124.0.0.0
Content-Security-Policy: script-src 'nonce-rAnd0m123' 'strict-dynamic'
Regex for a key: ^sk-[A-Za-z0-9]{20,}$ and for a token ^gh[pousr]_\w{36}$
Column token varchar(64) unique, column secret bytea, column salt bytea.
select token_hash from tokens where revoked_at is null
The migration adds api_tokens(id, name, token_hash, last_used_at).
In tests the password is "password" and the user is "test".
The password for the demo account: see the wiki, page 12.
Passwords for service accounts: at least 24 characters, kept in 1Password.
Rules on passwords of guests: SHA256, 12 rounds, expire after 90d.
How we check the password on login: bcrypt first, then argon2id.
The seed user admin/admin exists only in docker compose.
credentials: include is needed for cookies across origins.
credentials are read from ~/.aws/credentials and ~/.pgpass.
Access-Control-Allow-Credentials: true needs an explicit origin.
pass the token by reference, then pass: true to the reporter.
All 128 tests pass: 12.4 s on CI, 31 s locally.
pw-browsers is cached under PLAYWRIGHT_BROWSERS_PATH=/ms-playwright
The keyboard shortcut Ctrl+K opens search, key: Escape closes it.
key: "orders.created", value: {"id": 7} is what the consumer sees.
The license key screen moved; license: Apache-2.0 stays in package.json.
Das Passwort muss mindestens 12 Zeichen haben.
Le mot de passe est obligatoire pour se connecter.
パスワードは12文字以上でなければなりません。
""".strip().splitlines()
)
