import { join } from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { CancelledError, getMessage, OpmateError, redactForeign, systemCode } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { decodeFile, openValue } from '../../document/document.js';
import { type Field, warnOfUnknown } from '../../document/field.js';
import { getValue } from '../../document/json-fields.js';
import type { JsonValue } from '../../document/json.js';
import { readNamedFile } from '../../files/read-file.js';
import { type Environment, runToEnd } from '../../files/run-program.js';

/** Login of a registry. */
export interface Credentials {
  username: string;
  password: string;
  /** Replaces the password: exchanged for a token by OAuth2 `refresh_token`. */
  identityToken?: string;
  /** Replaces all else: sent unchanged as a Bearer token. */
  registryToken?: string;
  /** Source for messages: `FILE, key "quay.io/ns"`. */
  source: string;
}

export interface CredentialOptions extends CancelOptions {
  environment: Environment;
  homeDirectory: string;
  /** `XDG_RUNTIME_DIR` */
  runtimeDirectory?: string | undefined;
  /** `--authfile` */
  authFile?: string | undefined;
  /** Time limit of a credential helper in milliseconds; default 30 s. */
  helperTimeoutMs?: number | undefined;
  logger?: Logger | undefined;
}

/** Credentials of one registry, which take precedence over the credential files. */
export interface CredentialOverrides {
  authFile?: string | undefined;
  /** `anonymous` sends none. */
  credentials?: Credentials | 'anonymous' | undefined;
}

export interface CredentialStore {
  /**
   * Returns the credentials for a repository; undefined if no file has any. Throws OpmateError AUTH or NOT_FOUND for an
   * unusable file. A failed credential helper is a warning.
   */
  find(registry: string, repository: string): Promise<Credentials | undefined>;
  /** Credential files in order of precedence. */
  readonly files: readonly string[];
  /** Problems of credential helpers so far, one line each. */
  readonly problems: readonly string[];
}

interface AuthFile {
  path: string;
  auths: ReadonlyMap<string, Field<never>>;
  helpers: ReadonlyMap<string, string>;
  store: string | undefined;
}

/**
 * Returns a store in which the overrides of a registry take precedence. Credential files named by overrides must exist.
 */
export function withCredentialOverrides(
  options: CredentialOptions,
  overridesFor: (registry: string) => CredentialOverrides | undefined,
): CredentialStore {
  const stores = new Map<string | undefined, CredentialStore>();
  const getStore = (authFile: string | undefined): CredentialStore =>
    getOrAdd(stores, authFile, () => createCredentialStore({ ...options, authFile }));
  const common = getStore(options.authFile);
  return {
    files: common.files,
    problems: common.problems,
    async find(registry, repository) {
      const { authFile, credentials } = overridesFor(registry) ?? {};
      if (credentials === 'anonymous') return undefined;
      return credentials ?? getStore(authFile ?? options.authFile).find(registry, repository);
    },
  };
}

/** Names of Docker Hub; credentials of one are valid for all. */
const dockerHub = ['docker.io', 'index.docker.io', 'registry-1.docker.io'];

/**
 * Returns the store of `--authfile`, REGISTRY_AUTH_FILE, `$DOCKER_CONFIG/config.json`, `~/.docker/config.json` and
 * `$XDG_RUNTIME_DIR/containers/auth.json`. A file without a matching or with an empty entry is skipped. Within a file the
 * most specific key takes precedence: `host/ns/name`, `host/ns`, `host`. (Source: containers-auth.json(5), docker-login.)
 */
export function createCredentialStore(options: CredentialOptions): CredentialStore {
  return new CredentialFiles(options);
}

/** Files of credentials, each read once, and what helpers returned. */
class CredentialFiles implements CredentialStore {
  readonly #options: CredentialOptions;
  readonly #logger: Logger;
  readonly #named: string | undefined;
  readonly #places: { path: string; required: boolean }[] = [];
  readonly #loaded = new Map<string, Promise<AuthFile | undefined>>();
  readonly #helped = new Map<string, Promise<Credentials | undefined>>();
  readonly #lookups = new Map<string, Promise<Credentials | undefined>>();
  readonly problems: string[] = [];
  readonly files: string[];

  constructor(options: CredentialOptions) {
    this.#options = options;
    const { environment, homeDirectory, runtimeDirectory, authFile } = options;
    this.#logger = options.logger ?? silentLogger;
    this.#named = environment.REGISTRY_AUTH_FILE;
    if (authFile !== undefined) this.#places.push({ path: authFile, required: true });
    if (this.#named) this.#places.push({ path: this.#named, required: false });
    if (environment.DOCKER_CONFIG) {
      this.#places.push({ path: join(environment.DOCKER_CONFIG, 'config.json'), required: false });
    }
    this.#places.push({ path: join(homeDirectory, '.docker/config.json'), required: false });
    if (runtimeDirectory)
      this.#places.push({ path: join(runtimeDirectory, 'containers/auth.json'), required: false });
    this.files = this.#places.map((place) => place.path);
  }

  /** Runs a helper once per server; a failure is reported once, and means no credentials. */
  #runOnce(helper: string, server: string, source: string): Promise<Credentials | undefined> {
    return getOrAdd(this.#helped, `${helper} ${server}`, async () => {
      try {
        return await runHelper(helper, server, source, this.#options);
      } catch (error) {
        if (error instanceof CancelledError) throw error;
        const problem = getMessage(error);
        this.problems.push(problem);
        this.#logger.log('warn', problem);
        return undefined;
      }
    });
  }

  async #findIn(file: AuthFile, registry: string, repository: string): Promise<Credentials | undefined> {
    const path = repository.split('/').filter(Boolean);
    for (let depth = path.length; depth >= 0; depth--) {
      const wanted = [registry, ...path.slice(0, depth)].join('/');
      const helperKey = findKey(file.helpers, wanted);
      const helper = helperKey === undefined ? undefined : file.helpers.get(helperKey);
      if (helper !== undefined) {
        const source = `${file.path}, credHelpers key "${helperKey}"`;
        const credentials = await this.#runOnce(helper, toServerName(wanted), source);
        if (credentials) return credentials;
      }
      const key = findKey(file.auths, wanted);
      const entry = key === undefined ? undefined : file.auths.get(key);
      const credentials = entry && readEntry(entry, `${file.path}, key "${key}"`);
      if (credentials) return credentials;
    }
    if (file.store === undefined) return undefined;
    return this.#runOnce(file.store, toServerName(registry), `${file.path}, credsStore`);
  }

  async #search(registry: string, repository: string): Promise<Credentials | undefined> {
    for (const { path, required } of this.#places) {
      const file = await getOrAdd(this.#loaded, path, () => readAuthFile(path, required));
      if (!file && path === this.#named) this.#logger.log('warn', `REGISTRY_AUTH_FILE: ${path}: not found`);
      const credentials = file && (await this.#findIn(file, registry, repository));
      if (!credentials) continue;
      this.#logger.log('debug', `${registry}/${repository}: credentials from ${credentials.source}`);
      return credentials;
    }
    this.#logger.log('debug', `${registry}/${repository}: no credentials`);
    return undefined;
  }

  find(registry: string, repository: string) {
    return getOrAdd(this.#lookups, `${registry}/${repository}`, () => this.#search(registry, repository));
  }
}

const maxAuthFileBytes = 16 * 1024 * 1024;

async function readAuthFile(path: string, required: boolean): Promise<AuthFile | undefined> {
  let bytes: Buffer;
  try {
    bytes = await readNamedFile(path, maxAuthFileBytes);
  } catch (error) {
    if (error instanceof OpmateError) throw error;
    const code = systemCode(error);
    const missing = code === 'ENOENT' || code === 'ENOTDIR';
    if (missing && !required) return undefined;
    const problem = missing ? 'not found' : `cannot be read (${code ?? 'unknown'})`;
    throw new OpmateError(missing ? 'NOT_FOUND' : 'AUTH', `credential file ${problem}`, {
      about: path,
    });
  }
  const root = openValue(parseSecretJson(decodeFile(bytes, path).replace(/^\uFEFF/, ''), path), {
    name: path,
    failureCode: 'AUTH',
  });
  const fields = root.object(['auths', 'credHelpers', 'credsStore'], { unknown: 'ignore' });
  return {
    path,
    auths: new Map(fields.auths.isPresent ? fields.auths.entries(Infinity) : []),
    helpers: new Map(Object.entries(fields.credHelpers.optionalTexts(Infinity) ?? {})),
    store: fields.credsStore.optionalText(),
  };
}

/** Parses JSON; unlike those of JSON.parse, the error message has none of the text. */
function parseSecretJson(text: string, path: string): JsonValue {
  try {
    return (text.trim() === '' ? {} : JSON.parse(text)) as JsonValue;
  } catch (error) {
    const offset = /position (\d+)/.exec(getMessage(error))?.[1];
    const line = offset === undefined ? undefined : text.slice(0, Number(offset)).split('\n').length;
    const subject = line === undefined ? path : `${path}:${line}`;
    throw new OpmateError('AUTH', 'credential file is not valid JSON', { subject, file: path, line });
  }
}

/** Returns the key that is exactly `wanted`, or a URL of that host, as Docker writes it. */
function findKey(entries: ReadonlyMap<string, unknown>, wanted: string): string | undefined {
  const names = dockerHub.includes(wanted) ? dockerHub : [wanted];
  if (entries.has(wanted)) return wanted;
  const wholeHost = !wanted.includes('/');
  return [...entries.keys()].find((key) => {
    if (/^https?:\/\//i.test(key)) return wholeHost && names.includes(key.split('/')[2]?.toLowerCase() ?? '');
    if (!wholeHost) return key === dockerHubAlias(wanted, key);
    return names.includes(key.toLowerCase().replace(/\/(v1|v2)?\/?$/, ''));
  });
}

/** Returns `wanted` under the host of `key`, if both are names of Docker Hub. */
function dockerHubAlias(wanted: string, key: string): string | undefined {
  const [host = '', ...path] = wanted.split('/');
  const [keyHost = ''] = key.split('/');
  if (!dockerHub.includes(host) || !dockerHub.includes(keyHost)) return undefined;
  return [keyHost, ...path].join('/');
}

/** Returns the name of a registry for helpers: Docker Hub has its historical URL. */
function toServerName(registry: string): string {
  return dockerHub.includes(registry) ? 'https://index.docker.io/v1/' : registry;
}

const entryFields = ['auth', 'username', 'password', 'identitytoken', 'registrytoken'] as const;

/** Returns the credentials of an entry of `auths`; undefined if it is empty. */
function readEntry(entry: Field<never>, source: string): Credentials | undefined {
  // Other fields, such as the email of old files, are accepted, but not similar names.
  const fields = entry.object(entryFields, warnOfUnknown);
  const [auth, username] = [readSecret(fields.auth), readSecret(fields.username)];
  const [password, identityToken] = [readSecret(fields.password), readSecret(fields.identitytoken)];
  const token = identityToken ? { identityToken } : {};
  if (auth) {
    const isBase64 = /^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(auth);
    const text = isBase64 ? Buffer.from(auth, 'base64').toString('utf8').replace(/\0+$/, '') : '';
    const colon = text.indexOf(':');
    if (colon < 0) return fields.auth.fail('expected base64 of "user:password"');
    return { username: text.slice(0, colon), password: text.slice(colon + 1), ...token, source };
  }
  if (username && password !== undefined) return { username, password, ...token, source };
  return identityToken ? { username: '', password: '', identityToken, source } : undefined;
}

/** Returns a string; undefined if absent. Unlike `anyText`, its error does not have the value. */
function readSecret(field: Field<never>): string | undefined {
  const { value } = field;
  if (value === undefined || typeof value === 'string') return value;
  return field.fail('expected a string');
}

const maxHelperOutput = 65_536;

/**
 * Runs `docker-credential-NAME get`. Returns undefined if it has no credentials of the server. Throws OpmateError AUTH
 * with helper and source, without its output of credentials. (Source: protocol of docker-credential-helpers.)
 */
async function runHelper(
  name: string,
  server: string,
  source: string,
  options: CredentialOptions,
): Promise<Credentials | undefined> {
  const program = `docker-credential-${name}`;
  const fault = (problem: string, hint?: string): OpmateError =>
    new OpmateError('AUTH', `${program}: ${problem} (from ${source})`, { hint });
  if (!/^[A-Za-z0-9._-]+$/.test(name)) {
    throw new OpmateError('AUTH', 'invalid name of a credential helper', { subject: source });
  }
  const { stdout, code, signalName } = await runToEnd(program, ['get'], {
    name: program,
    environment: options.environment,
    signal: options.signal,
    input: `${server}\n`,
    timeoutMs: options.helperTimeoutMs ?? 30_000,
    maxOutput: maxHelperOutput,
    installHint: 'install it, or remove it from the file',
  }).catch((error: unknown) => {
    if (error instanceof CancelledError || !(error instanceof OpmateError)) throw error;
    throw fault(error.problem, error.hint);
  });
  if (signalName !== null) throw fault(`killed by ${signalName}`);
  const text = stdout.toString('utf8').trim();
  if (code !== 0) {
    if (/credentials not found/i.test(text)) return undefined;
    const detail =
      text === '' || text.includes('{') ? '' : `: ${redactForeign(text.split('\n')[0] ?? '').slice(0, 200)}`;
    throw fault(`failed with exit code ${code}${detail}`);
  }
  let response: JsonValue;
  try {
    response = JSON.parse(text) as JsonValue;
  } catch {
    throw fault('response is not valid JSON');
  }
  const username = getValue(response, 'Username');
  const secret = getValue(response, 'Secret');
  if (typeof username !== 'string' || typeof secret !== 'string')
    throw fault('response lacks Username or Secret');
  if (username === '' && secret === '') return undefined;
  if (username === '<token>') return { username: '', password: '', identityToken: secret, source };
  return { username, password: secret, source };
}
