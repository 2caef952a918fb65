import { join } from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { CancelledError, getMessage, OpmateError, redact, systemCode } from '../../core/errors.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../document/json.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { readNamedFile } from '../../files/read-file.js';
import { type Environment, runToEnd } from '../../files/run-program.js';

/** What a registry is logged in to with. */
export interface Credentials {
  username: string;
  password: string;
  /** Takes the place of the password: exchanged for a token by OAuth2 `refresh_token`. */
  identityToken?: string;
  /** Takes the place of all else: sent as it is, as a Bearer token. */
  registryToken?: string;
  /** Where they come from, for messages: `FILE, key "quay.io/ns"`. */
  source: string;
}

export interface CredentialOptions extends CancelOptions {
  environment: Environment;
  homeDirectory: string;
  /** `XDG_RUNTIME_DIR` */
  runtimeDirectory?: string | undefined;
  /** `--authfile` */
  authFile?: string | undefined;
  /** How long a credential helper may take; 30 s. */
  helperTimeoutMs?: number | undefined;
  logger?: Logger;
}

/** What the user says of the credentials for one registry, in place of the files of all. */
export interface CredentialOverrides {
  authFile?: string | undefined;
  /** `anonymous` sends none. */
  credentials?: Credentials | 'anonymous' | undefined;
}

export interface CredentialStore {
  /**
   * The credentials for a repository, or undefined when no file has any. Throws OpmateError AUTH or NOT_FOUND
   * for a file that is not usable, naming it. A credential helper that fails is a warning.
   */
  find(registry: string, repository: string): Promise<Credentials | undefined>;
  /** The files that are looked into, in their order. */
  readonly files: readonly string[];
  /** What went wrong with credential helpers so far, one line each. */
  readonly problems: readonly string[];
}

interface AuthFile {
  path: string;
  auths: JsonObject;
  helpers: JsonObject;
  store: string | undefined;
}

/**
 * Returns a store in which what `overridesFor` says of a registry takes precedence. Credential files that it names are
 * required.
 */
export function withCredentialOverrides(
  options: CredentialOptions,
  overridesFor: (registry: string) => CredentialOverrides | undefined,
): CredentialStore {
  const stores = new Map<string | undefined, CredentialStore>();
  const getStore = (authFile: string | undefined): CredentialStore => {
    const known = stores.get(authFile) ?? createCredentialStore({ ...options, authFile });
    stores.set(authFile, known);
    return known;
  };
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

/** The names of Docker Hub; credentials for any of them serve all. */
const dockerHub = ['docker.io', 'index.docker.io', 'registry-1.docker.io'];

/**
 * Looks credentials up in `--authfile`, REGISTRY_AUTH_FILE, `$DOCKER_CONFIG/config.json`,
 * `~/.docker/config.json`, `$XDG_RUNTIME_DIR/containers/auth.json`. A file without a matching entry, or with
 * an empty one, falls through to the next. Within a file the most specific key wins: `host/ns/name`,
 * `host/ns`, `host`; hosts are compared whole. (Source: containers-auth.json(5), docker-login.)
 */
export function createCredentialStore(options: CredentialOptions): CredentialStore {
  const { environment, homeDirectory, runtimeDirectory, authFile } = options;
  const logger = options.logger ?? silentLogger;
  const named = environment.REGISTRY_AUTH_FILE;
  const places: { path: string; required: boolean }[] = [];
  if (authFile !== undefined) places.push({ path: authFile, required: true });
  if (named) places.push({ path: named, required: false });
  if (environment.DOCKER_CONFIG) {
    places.push({ path: join(environment.DOCKER_CONFIG, 'config.json'), required: false });
  }
  places.push({ path: join(homeDirectory, '.docker/config.json'), required: false });
  if (runtimeDirectory)
    places.push({ path: join(runtimeDirectory, 'containers/auth.json'), required: false });
  const loaded = new Map<string, Promise<AuthFile | undefined>>();
  const helped = new Map<string, Promise<Credentials | undefined>>();
  const lookups = new Map<string, Promise<Credentials | undefined>>();
  const problems: string[] = [];

  function load(path: string, required: boolean): Promise<AuthFile | undefined> {
    const known = loaded.get(path) ?? readAuthFile(path, required);
    loaded.set(path, known);
    return known;
  }

  /** Asks a helper once for each server; a failure is told once and counts as "has none". */
  function askHelper(helper: string, server: string, source: string): Promise<Credentials | undefined> {
    const key = `${helper} ${server}`;
    async function ask(): Promise<Credentials | undefined> {
      try {
        return await runHelper(helper, server, source, options);
      } catch (error) {
        if (error instanceof CancelledError) throw error;
        const problem = getMessage(error);
        problems.push(problem);
        logger.log('warn', problem);
        return undefined;
      }
    }
    const known = helped.get(key) ?? ask();
    helped.set(key, known);
    return known;
  }

  async function findIn(
    file: AuthFile,
    registry: string,
    repository: string,
  ): Promise<Credentials | undefined> {
    const path = repository.split('/').filter(Boolean);
    for (let depth = path.length; depth >= 0; depth--) {
      const wanted = [registry, ...path.slice(0, depth)].join('/');
      const helper = matchingKey(file.helpers, wanted);
      if (helper !== undefined) {
        const source = `${file.path}, credHelpers key "${helper}"`;
        const entry = await askHelper(String(file.helpers[helper]), serverName(wanted), source);
        if (entry) return entry;
      }
      const key = matchingKey(file.auths, wanted);
      const entry = key === undefined ? undefined : readEntry(file.auths[key], file.path, key);
      if (entry) return entry;
    }
    if (file.store === undefined) return undefined;
    return askHelper(file.store, serverName(registry), `${file.path}, credsStore`);
  }

  async function search(registry: string, repository: string): Promise<Credentials | undefined> {
    for (const { path, required } of places) {
      const file = await load(path, required);
      if (!file && path === named) logger.log('warn', `REGISTRY_AUTH_FILE: ${path}: not found`);
      const credentials = file && (await findIn(file, registry, repository));
      if (!credentials) continue;
      logger.log('debug', `${registry}/${repository}: credentials from ${credentials.source}`);
      return credentials;
    }
    logger.log('debug', `${registry}/${repository}: no credentials`);
    return undefined;
  }

  return {
    files: places.map((place) => place.path),
    problems,
    find(registry, repository) {
      const key = `${registry}/${repository}`;
      const known = lookups.get(key) ?? search(registry, repository);
      lookups.set(key, known);
      return known;
    },
  };
}

const maxAuthFileBytes = 16 * 1024 * 1024;

async function readAuthFile(path: string, required: boolean): Promise<AuthFile | undefined> {
  let text: string;
  try {
    text = String(await readNamedFile(path, maxAuthFileBytes));
  } catch (error) {
    if (error instanceof OpmateError) throw error;
    const code = systemCode(error);
    const missing = code === 'ENOENT' || code === 'ENOTDIR';
    if (missing && !required) return undefined;
    const problem = missing ? 'not found' : `cannot be read (${code ?? 'unknown'})`;
    throw new OpmateError(missing ? 'NOT_FOUND' : 'AUTH', `credential file ${problem}`, {
      subject: path,
      file: path,
    });
  }
  const document = parseSecretJson(text.replace(/^\uFEFF/, ''), path);
  const auths = section(document, 'auths', path);
  const helpers = section(document, 'credHelpers', path);
  const store = document.credsStore;
  if (store !== undefined && store !== null && typeof store !== 'string') {
    throw broken(path, 'credsStore must be a string');
  }
  return { path, auths, helpers, store: store || undefined };
}

/** Parses without letting any of the text into the message, as JSON.parse would. */
function parseSecretJson(text: string, path: string): JsonObject {
  let value: JsonValue;
  try {
    value = (text.trim() === '' ? {} : JSON.parse(text)) as JsonValue;
  } catch (error) {
    const offset = /position (\d+)/.exec(getMessage(error))?.[1];
    const line = offset === undefined ? undefined : text.slice(0, Number(offset)).split('\n').length;
    const where = line === undefined ? path : `${path}:${line}`;
    throw new OpmateError('AUTH', 'credential file is not valid JSON', { subject: where, file: path, line });
  }
  if (!isJsonObject(value)) throw broken(path, 'must be a JSON object');
  return value;
}

function section(document: JsonObject, key: string, path: string): JsonObject {
  const value = document[key] ?? {};
  if (!isJsonObject(value)) throw broken(path, `${key} must be an object`);
  return value;
}

function broken(path: string, problem: string): OpmateError {
  return new OpmateError('AUTH', `credential file: ${problem}`, { subject: path, file: path });
}

/**
 * The key that stands for exactly `wanted`. A key given as a URL, as Docker writes it, stands for its host.
 */
function matchingKey(entries: JsonObject, wanted: string): string | undefined {
  const names = dockerHub.includes(wanted) ? dockerHub : [wanted];
  if (Object.hasOwn(entries, wanted)) return wanted;
  const wholeHost = !wanted.includes('/');
  return Object.keys(entries).find((key) => {
    if (/^https?:\/\//i.test(key)) return wholeHost && names.includes(key.split('/')[2]?.toLowerCase() ?? '');
    if (!wholeHost) return key === dockerHubAlias(wanted, key);
    return names.includes(key.toLowerCase().replace(/\/(v1|v2)?\/?$/, ''));
  });
}

/** `wanted` under the host of `key`, when both are names of Docker Hub. */
function dockerHubAlias(wanted: string, key: string): string | undefined {
  const [host = '', ...path] = wanted.split('/');
  const [keyHost = ''] = key.split('/');
  if (!dockerHub.includes(host) || !dockerHub.includes(keyHost)) return undefined;
  return [keyHost, ...path].join('/');
}

/** What a helper calls a registry: Docker Hub has its historical URL. */
function serverName(registry: string): string {
  return dockerHub.includes(registry) ? 'https://index.docker.io/v1/' : registry;
}

/** Credentials of an entry of `auths`; undefined when it is empty. */
function readEntry(entry: JsonValue | undefined, path: string, key: string): Credentials | undefined {
  if (!isJsonObject(entry)) throw broken(path, `entry "${key}" must be an object`);
  const { auth, username, password, identitytoken } = entry;
  const source = `${path}, key "${key}"`;
  const token =
    typeof identitytoken === 'string' && identitytoken !== '' ? { identityToken: identitytoken } : {};
  if (typeof auth === 'string' && auth !== '') {
    const bytes = /^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(auth) ? Buffer.from(auth, 'base64') : undefined;
    const text = bytes?.toString('utf8').replace(/\0+$/, '') ?? '';
    const colon = text.indexOf(':');
    if (colon < 0) throw broken(path, `entry "${key}": auth: expected base64 of "user:password"`);
    return { username: text.slice(0, colon), password: text.slice(colon + 1), ...token, source };
  }
  if (typeof username === 'string' && username !== '' && typeof password === 'string') {
    return { username, password, ...token, source };
  }
  return 'identityToken' in token ? { username: '', password: '', ...token, source } : undefined;
}

const maxHelperOutput = 65_536;

/**
 * Runs `docker-credential-NAME get`. Undefined when it knows nothing of the server. (Source: the protocol of
 * docker-credential-helpers.) Throws OpmateError AUTH that names helper and source; never shows what it
 * printed as credentials.
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
    throw new OpmateError('AUTH', 'not a valid name of a credential helper', { subject: source });
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
  if (signalName !== null) throw fault(`ended by ${signalName}`);
  const text = stdout.toString('utf8').trim();
  if (code !== 0) {
    if (/credentials not found/i.test(text)) return undefined;
    const detail =
      text === '' || text.includes('{') ? '' : `: ${redact(text.split('\n')[0] ?? '').slice(0, 200)}`;
    throw fault(`failed with exit code ${code}${detail}`);
  }
  let response: JsonValue;
  try {
    response = JSON.parse(text) as JsonValue;
  } catch {
    throw fault('its response is not valid JSON');
  }
  if (!isJsonObject(response)) throw fault('its response is not a JSON object');
  const { Username: username, Secret: secret } = response;
  if (typeof username !== 'string' || typeof secret !== 'string')
    throw fault('its output lacks Username or Secret');
  if (username === '' && secret === '') return undefined;
  if (username === '<token>') return { username: '', password: '', identityToken: secret, source };
  return { username, password: secret, source };
}
