import { CancelledError, OpmateError, RegistryError } from '../../core/errors.js';
import { openJson } from '../../document/document.js';
import { getText, getValue } from '../../document/json-fields.js';
import type { Credentials, CredentialStore } from './credentials.js';
import {
  type AddressKind,
  isAllowedHost,
  type RedirectSource,
  leadFrom,
  literalKind,
  mayLeadTo,
} from '../transport/network-policy.js';
import { oneLine, readRegistryErrors, formatRequestSubject } from '../transport/transport-responses.js';
import { isRetryStatus } from '../transport/retry-policy.js';
import { retryAfterMs, TemporaryResponseError } from '../transport/transport-retry.js';
import { type Transport, type TransportRequest, type TransportResponse } from '../transport/transport.js';

/** A challenge of a `WWW-Authenticate` header; scheme and parameter names in lower case. */
interface Challenge {
  scheme: string;
  parameters: Record<string, string>;
}

interface AuthOptions {
  /** Registry as credentials name it, such as `docker.io`. */
  registry: string;
  credentials: CredentialStore;
  /** Transport to token servers; must not follow redirects to another origin. */
  tokens: Transport;
  /** Shared by all transports of a connection. */
  cache: TokenCache;
  /** Hosts (`host` or `host:port`) that may be a realm at any address. */
  allowedPrivateHosts?: readonly string[];
  /** Monotonic clock in milliseconds. */
  now: () => number;
}

interface Token {
  value: string;
  validUntil: number;
}

/** Tokens by everything that determines access, and the last challenges of each kind of request. */
interface TokenCache {
  tokens: Map<string, Promise<Token>>;
  challenges: Map<string, ReceivedChallenges>;
}

interface ReceivedChallenges {
  challenges: Challenge[];
  /** Lead of the response that had them. */
  lead: RedirectSource;
}

/** A value of the Authorization header. */
interface Authorization {
  value: string;
  /** Scopes of a token; undefined for other values. */
  scopes?: readonly string[];
  /** A cached token may have ended before its time; other values are not refused for that. */
  isCached: boolean;
}

/** Maximum further attempts per request: a cached token, a renewed one, one with more access. */
const maxRounds = 4;

export function createTokenCache(): TokenCache {
  return { tokens: new Map(), challenges: new Map() };
}

/**
 * Responds to the 401 challenges, Basic and Bearer, of the requested origin, separately for each request. Tokens are sent
 * to that origin only, credentials to it and to the token server that it names itself, as Docker Hub needs: a challenge of
 * any other origin, such as that of a redirect, is refused. A cached token that is refused is renewed, and a token that lacks the access of a
 * request is replaced by one with all of it. Throws RegistryError (AUTH, 401) with the credentials' file and key if that
 * fails, and OpmateError UNSAFE for a refused realm.
 */
export function withAuth(next: Transport, options: AuthOptions): Transport {
  return new Authentication(next, options);
}

/** Requests with the tokens and credentials of one registry. */
class Authentication implements Transport {
  readonly #next: Transport;
  readonly #options: AuthOptions;
  readonly #cache: TokenCache;

  constructor(next: Transport, options: AuthOptions) {
    this.#next = next;
    this.#options = options;
    this.#cache = options.cache;
  }

  #findCredentials({ scope }: TransportRequest): Promise<Credentials | undefined> {
    return this.#options.credentials.find(this.#options.registry, scope?.repository ?? '');
  }

  /**
   * Returns the Authorization value for the first supported challenge. `isUsable` decides on tokens of the cache: one that
   * the registry has just refused is not used again.
   */
  async #authorize(
    { challenges, lead }: ReceivedChallenges,
    request: TransportRequest,
    isUsable: (value: string) => boolean = () => true,
  ): Promise<Authorization | undefined> {
    const credentials = await this.#findCredentials(request);
    if (credentials?.registryToken !== undefined)
      return { value: `Bearer ${credentials.registryToken}`, isCached: false };
    const bearer = findBearer(challenges);
    const isBasic = challenges.some(({ scheme }) => scheme === 'basic');
    const value = (isBasic && credentials && basicValue(credentials)) || undefined;
    const basic = value === undefined ? undefined : { value, isCached: false };
    if (bearer === undefined) return basic;
    try {
      return await this.#getToken(bearer, credentials, { ...request, lead }, isUsable);
    } catch (error) {
      // A refused realm does not matter if the registry accepts the credentials themselves.
      if (!basic || !(error instanceof OpmateError) || error.code !== 'UNSAFE') throw error;
    }
    return basic;
  }

  async #getToken(
    challenge: Challenge,
    credentials: Credentials | undefined,
    request: TransportRequest & { lead: RedirectSource },
    isUsable: (value: string) => boolean,
  ): Promise<Authorization> {
    const { parameters } = challenge;
    const url = new URL(request.url);
    const hosts = this.#options.allowedPrivateHosts ?? [];
    const realm = checkRealm(parameters.realm ?? '', url, hosts, request.lead.kind);
    const scopes = getScopes(challenge, request);
    const { service } = parameters;
    const { tokens } = this.#cache;
    const key = tokenKey({
      registry: this.#options.registry,
      origin: url.origin,
      realm: realm.href,
      service,
      scopes,
      credentials,
    });
    // The first of several concurrent requests fetches the token, the others wait for it.
    for (let current = tokens.get(key); current; current = tokens.get(key)) {
      const token = await waitFor(current, request);
      if (tokens.get(key) !== current) continue;
      const value = `Bearer ${token?.value}`;
      if (token && token.validUntil > this.#options.now() && isUsable(value))
        return { value, scopes, isCached: true };
      break;
    }
    const fetched = this.#fetchToken(
      realm,
      tokenRequest(realm, service, scopes, credentials),
      credentials,
      request,
    );
    tokens.set(key, fetched);
    try {
      return { value: `Bearer ${(await fetched).value}`, scopes, isCached: false };
    } catch (error) {
      if (tokens.get(key) === fetched) tokens.delete(key);
      throw error;
    }
  }

  async #fetchToken(
    realm: URL,
    tokenRequest: TransportRequest,
    credentials: Credentials | undefined,
    request: TransportRequest,
  ): Promise<Token> {
    const requestedAt = this.#options.now();
    const response = await this.#options.tokens.send({
      ...tokenRequest,
      ...(realm.origin !== new URL(request.url).origin && { lead: request.lead }),
      ...(request.signal && { signal: request.signal }),
      ...(request.deadline !== undefined && { deadline: request.deadline }),
    });
    const subject = `${formatRequestSubject(request)}: token server ${realm.host}`;
    const { status } = response;
    if (status === 200) {
      const body = await response.read(maxTokenBody, `${subject}: response`);
      const { token, lifetime } = readToken(body, subject);
      // Renewed a little before its end, so it does not expire on the way.
      return { value: token, validUntil: requestedAt + lifetime * 1000 - Math.min(5_000, lifetime * 200) };
    }
    const { summary, codes: registryCodes } = await readRegistryErrors(response);
    const refusal = `${subject} ${summary.replace(/^registry /, '')}`;
    const problem = status < 500 && !credentials ? `${refusal}: ${this.#describeMissing()}` : refusal;
    if (isRetryStatus(status)) throw new TemporaryResponseError(refusal, status, retryAfterMs(response));
    const code = status < 500 ? 'AUTH' : 'REGISTRY';
    throw new RegistryError(problem, { status, registryCodes, code, hint: this.#getLoginHint(credentials) });
  }

  /** Returns the error for a 401 response to a request with this Authorization value. */
  async #toRefusal(
    response: TransportResponse,
    request: TransportRequest,
    sent: string | undefined,
  ): Promise<RegistryError> {
    const credentials = await this.#findCredentials(request);
    const { detail: full, codes } = await readRegistryErrors(response);
    const detail = oneLine(full, 300);
    const status = `(401${detail && `: ${detail}`})`;
    const details = { status: 401, registryCodes: codes, code: 'AUTH' } as const;
    // A password is refused for the whole registry, a token possibly for one repository.
    if (credentials && sent?.startsWith('Basic '))
      return new RegistryError(`credentials refused ${status}`, {
        ...details,
        subject: new URL(request.url).host,
        hint: `check the user name and password from ${credentials.source}`,
      });
    const problem = credentials
      ? `credentials refused ${status}`
      : `authentication required ${status}: ${this.#describeMissing()}`;
    const subject = formatRequestSubject(request);
    return new RegistryError(problem, { ...details, subject, hint: this.#getLoginHint(credentials) });
  }

  /** Returns the places without usable credentials. */
  #describeMissing(): string {
    return [
      `no credentials in ${this.#options.credentials.files.join(', ')}`,
      ...this.#options.credentials.problems,
    ].join('; ');
  }

  #getLoginHint(credentials: Credentials | undefined): string {
    return credentials
      ? `check the repository name, and that the credentials from ${credentials.source} have access to it`
      : 'log in, or specify a credentials file with registry.authFile';
  }

  /**
   * Returns the challenges to satisfy after a response; undefined if no other value can help. A token without all of the
   * access of a request may be refused by a 403, or a 401 without a challenge for tokens: the last one that the
   * repository sent is then asked for all of it.
   */
  async #findChallenges(
    response: TransportResponse,
    request: TransportRequest,
    sent: Authorization | undefined,
  ): Promise<ReceivedChallenges | undefined> {
    if (response.status !== 401 && response.status !== 403) return undefined;
    if (new URL(response.url).origin !== new URL(request.url).origin) return undefined;
    const challenges = parseChallenges(response.headers.get('www-authenticate') ?? '');
    const received = { challenges, lead: leadFrom(request, response, 'token server') };
    if (response.status === 401 && findBearer(challenges) !== undefined) return received;
    const isPassword = sent !== undefined && sent.scopes === undefined;
    const last = this.#cache.challenges.get(this.#challengeKey(request, []));
    const bearer = last && findBearer(last.challenges);
    if (bearer !== undefined && !isPassword && !allows(sent?.scopes ?? [], request)) {
      const parameters = { ...bearer.parameters, scope: defaultScope(request) };
      return { ...last, challenges: [{ ...bearer, parameters }] } as ReceivedChallenges;
    }
    return response.status === 401 ? received : undefined;
  }

  /** Returns the key of the last challenges of a kind of request; without actions, of its repository. */
  #challengeKey({ url, scope }: TransportRequest, actions: readonly string[] = scope?.actions ?? []): string {
    return JSON.stringify([this.#options.registry, new URL(url).origin, scope?.repository ?? '', ...actions]);
  }

  #keepChallenges(request: TransportRequest, challenges: ReceivedChallenges): void {
    this.#cache.challenges.set(this.#challengeKey(request), challenges);
    if (findBearer(challenges.challenges) !== undefined)
      this.#cache.challenges.set(this.#challengeKey(request, []), challenges);
  }

  async send(request: TransportRequest) {
    const known = this.#cache.challenges.get(this.#challengeKey(request));
    let sent = known && (await this.#authorize(known, request));
    const refused = new Set<string>();
    for (let round = 1; ; round++) {
      const response = await this.#next.send(withAuthorization(request, sent?.value));
      if (response.status === 401) requireSameOrigin(response, request);
      const challenges = await this.#findChallenges(response, request, sent);
      if (challenges === undefined) return response;
      if (sent !== undefined) refused.add(sent.value);
      const isFinal =
        round === maxRounds || (sent?.isCached === false && isAskedFor(challenges, sent, request));
      const renewed = isFinal
        ? undefined
        : await this.#authorize(challenges, request, (value) => !refused.has(value));
      if (renewed === undefined || refused.has(renewed.value)) {
        if (response.status !== 401) return response;
        throw await this.#toRefusal(response, request, sent?.value ?? renewed?.value);
      }
      response.discard();
      this.#keepChallenges(request, challenges);
      sent = renewed;
    }
  }
}

/** Throws RegistryError if a redirect led to a host that requires authentication. */
function requireSameOrigin(response: TransportResponse, request: TransportRequest): void {
  const finalUrl = new URL(response.url);
  if (finalUrl.origin === new URL(request.url).origin) return;
  response.discard();
  throw new RegistryError(`redirected to ${finalUrl.host}, which requires authentication`, {
    subject: formatRequestSubject(request),
    status: 401,
    code: 'AUTH',
    hint: 'use the final URL: credentials are never sent to the host of a redirect',
  });
}

function findBearer(challenges: readonly Challenge[]): Challenge | undefined {
  return challenges.find(({ scheme, parameters }) => scheme === 'bearer' && parameters.realm);
}

/** Reports whether scopes include all access of a request. */
function allows(scopes: readonly string[], { scope }: TransportRequest): boolean {
  if (scope === undefined) return true;
  return scopes.some((text) => {
    const [type = '', name, actions = ''] = text.split(':');
    const granted = actions.split(',');
    const isSame = type.startsWith('repository') && name === scope.repository;
    return isSame && (granted.includes('*') || scope.actions.every((action) => granted.includes(action)));
  });
}

/** Reports whether a refused value is what the challenges ask for, so another one would be the same. */
function isAskedFor(
  { challenges }: ReceivedChallenges,
  sent: Authorization,
  request: TransportRequest,
): boolean {
  const bearer = findBearer(challenges);
  if (bearer === undefined || sent.scopes === undefined) return true;
  return getScopes(bearer, request).join(' ') === sent.scopes.join(' ');
}

function getScopes({ parameters }: Challenge, request: TransportRequest): string[] {
  return (parameters.scope ?? defaultScope(request)).split(' ').filter(Boolean);
}

/**
 * Returns the cache key of a token. A challenge is text of the registry, so another registry can repeat its realm, service
 * and scope: a token belongs to the registry and origin that it was fetched for.
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

function basicValue({ username, password, identityToken }: Credentials): string | undefined {
  if (username === '' && identityToken !== undefined) return undefined;
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
}

/** Returns the token that another request fetches; undefined if that request was cancelled. */
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
 * Checks the token server of a registry. Throws OpmateError UNSAFE for schemes other than HTTP, plain HTTP for an HTTPS
 * registry, user information, and an address of this machine, a private network or the link unless the registry has one
 * of the same kind: a hostile registry cannot reach internal services. The realm may be on any public host and gets the
 * credentials of this registry's entry, and of no other. Host names are checked on connecting.
 */
export function checkRealm(
  text: string,
  registry: URL,
  allowed: readonly string[],
  registryKind: AddressKind = literalKind(registry) ?? 'public',
): URL {
  const subject = registry.host;
  const refuse = (problem: string, hint?: string): OpmateError =>
    new OpmateError('UNSAFE', `token server refused: ${problem}`, { subject, hint });
  if (!URL.canParse(text)) throw refuse('invalid realm URL');
  const realm = new URL(text);
  if (realm.protocol !== 'https:' && realm.protocol !== 'http:') throw refuse(`scheme ${realm.protocol}`);
  if (realm.username || realm.password) throw refuse('user information in its URL');
  if (realm.protocol === 'http:' && registry.protocol === 'https:') {
    throw refuse(`plain HTTP at ${realm.host}, but HTTPS at the registry`);
  }
  const kind = literalKind(realm) ?? 'public';
  if (realm.origin === registry.origin || mayLeadTo(kind, registryKind) || isAllowedHost(realm, allowed)) {
    return realm;
  }
  throw refuse(
    `${realm.host} is a ${kind} address and the registry's is not`,
    `allow the host with registry.allowedPrivateHosts ${realm.hostname}`,
  );
}

const maxTokenBody = 1_048_576;

/** Returns the request of a token. (Source: distribution token specification, and its OAuth2 form for identity tokens.) */
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
    // Unlike the query of a GET, the form has a single field for all scopes.
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

function readToken(body: Buffer, subject: string): { token: string; lifetime: number } {
  const root = openJson(body, { name: subject, kind: 'reference', failureCode: 'AUTH' });
  const response = root.jsonObject();
  const token = getText(response, 'token') || getText(response, 'access_token');
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new OpmateError('AUTH', 'response has no usable token', { subject });
  }
  const lifetime = getValue(response, 'expires_in');
  return { token, lifetime: typeof lifetime === 'number' && lifetime > 0 ? lifetime : 60 };
}

const httpToken = "[!#$%&'*+.^_`|~\\w-]+";
/** An unterminated quote ends with the header, so that no part of it is read twice. */
const parameter = `(${httpToken})\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)(?:\\\\?$|")|([^\\s,"]*))`;

/**
 * Parses `WWW-Authenticate`, in which commas separate both challenges and their parameters. Ignores invalid parts.
 * (Source: RFC 9110, 11.6.1.)
 */
export function parseChallenges(header: string): Challenge[] {
  const challenges: Challenge[] = [];
  const pattern = new RegExp(`[\\s,]*(?:${parameter}|(${httpToken})(?=\\s|,|$)|[^\\s,]+)`, 'gy');
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
