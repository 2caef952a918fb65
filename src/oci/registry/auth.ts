import { CancelledError, OpmateError, RegistryError } from '../../core/errors.js';
import { isJsonObject, type JsonValue } from '../../document/json.js';
import type { Credentials, CredentialStore } from './credentials.js';
import {
  type AddressKind,
  isAllowedHost,
  type Lead,
  leadFrom,
  literalKind,
  mayLeadTo,
} from '../transport/network-policy.js';
import { oneLine, readRegistryErrors, formatRequestSubject } from '../transport/transport-answers.js';
import { isRetryStatus } from '../transport/retry-policy.js';
import { retryAfterMs, TemporaryAnswerError } from '../transport/transport-retry.js';
import { type Transport, type TransportRequest, type TransportResponse } from '../transport/transport.js';

/** One challenge of a `WWW-Authenticate` header; scheme and parameter names in lower case. */
interface Challenge {
  scheme: string;
  parameters: Record<string, string>;
}

interface AuthOptions {
  /** The registry as credentials know it, e.g. `docker.io`. */
  registry: string;
  credentials: CredentialStore;
  /** Talks to token servers; must not follow redirects to another origin. */
  tokens: Transport;
  /** Shared by all transports of a connection. */
  cache: TokenCache;
  /** Hosts (`host` or `host:port`) that may be a realm at any address. */
  allowedPrivateHosts?: readonly string[];
  /** Milliseconds of a clock that never goes back. */
  now: () => number;
}

interface Token {
  value: string;
  validUntil: number;
}

/** Tokens by all that decides who may see them, and the challenge that each kind of request met last. */
interface TokenCache {
  tokens: Map<string, Promise<Token>>;
  challenges: Map<string, MetChallenges>;
}

/** Challenges, and where the answer that held them leads. */
interface MetChallenges {
  challenges: Challenge[];
  lead: Lead;
}

export function createTokenCache(): TokenCache {
  return { tokens: new Map(), challenges: new Map() };
}

/**
 * Answers 401 challenges, Basic and Bearer, of the origin that was asked, for each request separately.
 * Credentials and tokens go to that origin only. A token that is refused is fetched anew once. Throws
 * RegistryError (AUTH, 401) when that does not help, naming the file and key that were used, and OpmateError
 * UNSAFE for a realm that must not be asked.
 */
export function withAuth(next: Transport, options: AuthOptions): Transport {
  const { cache } = options;
  return {
    async send(request) {
      const key = (): string => challengeKey(request, options.registry);
      const known = cache.challenges.size === 0 ? undefined : cache.challenges.get(key());
      const first = known && (await authorize(known, request, options, undefined));
      const response = await next.send(withAuthorization(request, first));
      if (response.status !== 401) return response;
      if (new URL(response.url).origin !== new URL(request.url).origin) {
        response.discard();
        const other = new URL(response.url).host;
        throw new RegistryError(`redirected to ${other}, which asks for authentication`, {
          subject: formatRequestSubject(request),
          status: 401,
          code: 'AUTH',
          hint: 'use the final URL: credentials are never sent to the host of a redirect',
        });
      }
      const met = {
        challenges: parseChallenges(response.headers.get('www-authenticate') ?? ''),
        lead: leadFrom(request, response, 'token server'),
      };
      const second = await authorize(met, request, options, first);
      if (second === undefined || (second === first && second.startsWith('Basic '))) {
        throw await refusal(response, request, options);
      }
      response.discard();
      cache.challenges.set(key(), met);
      const reply = await next.send(withAuthorization(request, second));
      if (reply.status === 401) throw await refusal(reply, request, options);
      return reply;
    },
  };
}

function challengeKey(request: TransportRequest, registry: string): string {
  const { repository = '', actions = [] } = request.scope ?? {};
  return JSON.stringify([registry, new URL(request.url).origin, repository, ...actions]);
}

/**
 * Returns the key under which a token is kept. A challenge is the registry's own text, so realm, service and
 * scope of another registry can be repeated: a token belongs to the registry and origin that it was fetched for.
 */
export function tokenKey(token: {
  registry: string;
  /** Scheme, host and port that the token is sent to. */
  origin: string;
  realm: string;
  service: string | undefined;
  scopes: readonly string[];
  credentials: Pick<Credentials, 'source' | 'username'> | undefined;
}): string {
  const { registry, origin, realm, service, scopes, credentials } = token;
  const entry = credentials && [credentials.source, credentials.username];
  return JSON.stringify([registry, origin, realm, service ?? null, scopes, entry ?? null]);
}

function withAuthorization(request: TransportRequest, authorization: string | undefined): TransportRequest {
  if (authorization === undefined) return request;
  return { ...request, headers: { ...request.headers, authorization } };
}

/**
 * The Authorization value that answers the first challenge that can be answered. `refused` is one that the
 * registry has just turned down, which is not taken from the cache again.
 */
async function authorize(
  { challenges, lead }: MetChallenges,
  request: TransportRequest,
  options: AuthOptions,
  refused: string | undefined,
): Promise<string | undefined> {
  const credentials = await options.credentials.find(options.registry, request.scope?.repository ?? '');
  if (credentials?.registryToken !== undefined) return `Bearer ${credentials.registryToken}`;
  const bearer = challenges.find(({ scheme, parameters }) => scheme === 'bearer' && parameters.realm);
  const basic = challenges.some(({ scheme }) => scheme === 'basic') && credentials && basicValue(credentials);
  if (bearer) {
    try {
      return `Bearer ${await fetchToken(bearer, lead, credentials, request, options, refused)}`;
    } catch (error) {
      // A realm that is refused does not matter where the registry takes the credentials itself.
      if (!basic || !(error instanceof OpmateError) || error.code !== 'UNSAFE') throw error;
    }
  }
  return basic || undefined;
}

function basicValue({ username, password, identityToken }: Credentials): string | undefined {
  if (username === '' && identityToken !== undefined) return undefined;
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
}

async function fetchToken(
  { parameters }: Challenge,
  lead: Lead,
  credentials: Credentials | undefined,
  request: TransportRequest,
  options: AuthOptions,
  refused: string | undefined,
): Promise<string> {
  const url = new URL(request.url);
  const realm = checkRealm(parameters.realm ?? '', url, options.allowedPrivateHosts ?? [], lead.kind);
  const scopes = (parameters.scope ?? defaultScope(request)).split(' ').filter(Boolean);
  const { registry } = options;
  const { tokens } = options.cache;
  const { service } = parameters;
  const key = tokenKey({ registry, origin: url.origin, realm: realm.href, service, scopes, credentials });
  // Of requests that come here together, the first one fetches and the others wait for it.
  for (let current = tokens.get(key); current; current = tokens.get(key)) {
    const token = await waitFor(current, request);
    if (tokens.get(key) !== current) continue;
    if (token && token.validUntil > options.now() && `Bearer ${token.value}` !== refused) return token.value;
    break;
  }
  const fetched = requestToken(realm, service, scopes, credentials, { ...request, lead }, options);
  tokens.set(key, fetched);
  try {
    return (await fetched).value;
  } catch (error) {
    if (tokens.get(key) === fetched) tokens.delete(key);
    throw error;
  }
}

/**
 * The token that another request fetches; undefined when that one was cancelled, which is no matter of ours.
 */
async function waitFor(token: Promise<Token>, request: TransportRequest): Promise<Token | undefined> {
  try {
    return await token;
  } catch (error) {
    if (error instanceof CancelledError && !request.signal?.aborted) return undefined;
    throw error;
  }
}

function defaultScope(request: TransportRequest): string {
  return request.scope ? `repository:${request.scope.repository}:${request.scope.actions.join(',')}` : '';
}

/**
 * Whether a token server may be asked on behalf of a registry. Refused (OpmateError UNSAFE): other schemes
 * than HTTP, plain HTTP for an HTTPS registry, user information, and an address of this machine, a private
 * network or the link unless the registry is on the same kind of address, so that a hostile registry can
 * neither collect credentials nor reach services inside. What a host name means is checked on connecting.
 */
export function checkRealm(
  text: string,
  registry: URL,
  allowed: readonly string[],
  registryKind: AddressKind = literalKind(registry) ?? 'public',
): URL {
  const subject = registry.host;
  const refuse = (why: string, hint?: string): OpmateError =>
    new OpmateError('UNSAFE', `token server refused: ${why}`, { subject, hint });
  if (!URL.canParse(text)) throw refuse('its realm is not a valid URL');
  const realm = new URL(text);
  if (realm.protocol !== 'https:' && realm.protocol !== 'http:') throw refuse(`scheme ${realm.protocol}`);
  if (realm.username || realm.password) throw refuse('user information in its URL');
  if (realm.protocol === 'http:' && registry.protocol === 'https:') {
    throw refuse(`plain HTTP at ${realm.host}, though the registry speaks HTTPS`);
  }
  const kind = literalKind(realm) ?? 'public';
  if (realm.origin === registry.origin || mayLeadTo(kind, registryKind) || isAllowedHost(realm, allowed)) {
    return realm;
  }
  throw refuse(
    `${realm.host} is a ${kind} address and the registry's is not`,
    `allow the host with --allow-private-host ${realm.hostname}`,
  );
}

const maxTokenBody = 1_048_576;

/**
 * Asks a token server. (Source: distribution token specification, and its OAuth2 form for identity tokens.)
 */
async function requestToken(
  realm: URL,
  service: string | undefined,
  scopes: readonly string[],
  credentials: Credentials | undefined,
  request: TransportRequest,
  options: AuthOptions,
): Promise<Token> {
  const requestedAt = options.now();
  const response = await options.tokens.send({
    ...tokenRequest(realm, service, scopes, credentials),
    ...(realm.origin !== new URL(request.url).origin && { lead: request.lead }),
    ...(request.signal && { signal: request.signal }),
    ...(request.deadline !== undefined && { deadline: request.deadline }),
  });
  const subject = `${formatRequestSubject(request)}: token server ${realm.host}`;
  if (response.status !== 200) throw await tokenRefusal(response, subject, credentials, options);
  const body = await response.read(maxTokenBody, `${subject}: its answer`);
  const { token, lifetime } = readToken(body, subject);
  // A token is left alone a little before its end, so that it does not run out on the way.
  return { value: token, validUntil: requestedAt + lifetime * 1000 - Math.min(5_000, lifetime * 200) };
}

function tokenRequest(
  realm: URL,
  service: string | undefined,
  scopes: readonly string[],
  credentials: Credentials | undefined,
): TransportRequest {
  const parameters: [string, string][] = service === undefined ? [] : [['service', service]];
  if (credentials?.identityToken !== undefined) {
    const form = new URLSearchParams([
      ['grant_type', 'refresh_token'],
      ['refresh_token', credentials.identityToken],
      ['client_id', 'opmate'],
      ...parameters,
    ]);
    // Unlike the query of a GET, the form has one field for all scopes.
    if (scopes.length > 0) form.append('scope', scopes.join(' '));
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    return { method: 'POST', url: realm.href, headers, body: Buffer.from(form.toString()) };
  }
  const url = new URL(realm);
  for (const [name, value] of parameters) url.searchParams.append(name, value);
  for (const scope of scopes) url.searchParams.append('scope', scope);
  const authorization = credentials && basicValue(credentials);
  return { method: 'GET', url: url.href, ...(authorization && { headers: { authorization } }) };
}

async function tokenRefusal(
  response: TransportResponse,
  subject: string,
  credentials: Credentials | undefined,
  options: AuthOptions,
): Promise<RegistryError> {
  const { status } = response;
  const { summary, codes } = await readRegistryErrors(response);
  const detail = summary.replace(/^registry /, '');
  if (isRetryStatus(status)) {
    return new TemporaryAnswerError(`${subject} ${detail}`, status, retryAfterMs(response));
  }
  return new RegistryError(`${subject} ${detail}`, {
    status,
    registryCodes: codes,
    code: status < 500 ? 'AUTH' : 'REGISTRY',
    hint: loginHint(credentials, options),
  });
}

function readToken(body: Buffer, subject: string): { token: string; lifetime: number } {
  let response: JsonValue;
  try {
    response = JSON.parse(body.toString('utf8')) as JsonValue;
  } catch {
    throw new OpmateError('AUTH', 'its response is not valid JSON', { subject });
  }
  if (!isJsonObject(response))
    throw new OpmateError('AUTH', 'its response is not a JSON object', { subject });
  const token = [response.token, response.access_token].find(
    (text) => typeof text === 'string' && text !== '',
  );
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) {
    throw new OpmateError('AUTH', 'its response has no usable token', { subject });
  }
  const lifetime =
    typeof response.expires_in === 'number' && response.expires_in > 0 ? response.expires_in : 60;
  return { token, lifetime };
}

async function refusal(
  response: TransportResponse,
  request: TransportRequest,
  options: AuthOptions,
): Promise<RegistryError> {
  const credentials = await options.credentials.find(options.registry, request.scope?.repository ?? '');
  const { detail: full, codes } = await readRegistryErrors(response);
  const detail = oneLine(full, 300);
  const what = credentials ? 'credentials refused' : 'authentication required';
  return new RegistryError(`${what} (401${detail && `: ${detail}`})`, {
    subject: formatRequestSubject(request),
    status: 401,
    registryCodes: codes,
    code: 'AUTH',
    hint: loginHint(credentials, options),
  });
}

function loginHint(credentials: Credentials | undefined, { credentials: store }: AuthOptions): string {
  if (credentials)
    return `check the repository name and the access of the credentials from ${credentials.source}`;
  const missing = `no credentials found in ${store.files.join(', ')}`;
  return `log in, or specify a credentials file with --authfile: ${[missing, ...store.problems].join('; ')}`;
}

const httpToken = "[!#$%&'*+.^_`|~\\w-]+";
const parameter = `(${httpToken})\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s,"]*))`;

/**
 * Parses `WWW-Authenticate`, in which several challenges, each with any number of parameters, are divided by
 * the same comma. Tolerates what does not parse by leaving it out. (Source: RFC 9110, 11.6.1.)
 */
export function parseChallenges(header: string): Challenge[] {
  const challenges: Challenge[] = [];
  const pattern = new RegExp(`\\s*,?\\s*(?:${parameter}|(${httpToken})(?=\\s|,|$)|\\S)`, 'gy');
  for (let match = pattern.exec(header); match; match = pattern.exec(header)) {
    const [, name, quoted, plain, scheme] = match;
    if (scheme !== undefined)
      challenges.push({ scheme: scheme.toLowerCase(), parameters: Object.create(null) });
    const current = challenges.at(-1);
    if (name !== undefined && current) {
      current.parameters[name.toLowerCase()] ??= quoted?.replace(/\\(.)/g, '$1') ?? plain ?? '';
    }
  }
  return challenges;
}
