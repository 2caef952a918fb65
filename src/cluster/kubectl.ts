import { runToEnd } from '../files/run-program.js';
import { OpmateError, redactForeign } from '../core/errors.js';
import { encodeGoJson, parseGoJson, quoteGo } from '../document/go-json.js';
import { type JsonObject, isJsonObject } from '../document/json.js';
import { getList } from '../document/json-fields.js';
import type { Logger } from '../core/log.js';

/** Selection of the cluster and of kubectl. */
interface KubectlOptions {
  /** Program, searched in PATH unless a path. */
  program: string;
  kubeconfig?: string | undefined;
  context?: string | undefined;
  /** User and groups to act as. */
  as?: string | undefined;
  asGroups?: readonly string[] | undefined;
  /** Complete environment for kubectl: credential plug-ins may read any variable. */
  environment: Readonly<Record<string, string | undefined>>;
  workingDirectory: string;
  logger: Logger;
  signal?: AbortSignal | undefined;
}

/** Result of a call. */
interface KubectlAnswer {
  stdout: string;
  /** Errors, one line each; empty on success. */
  errors: string[];
}

/** Input of a call. */
interface KubectlCall {
  /** Objects for `-f -`. */
  objects?: readonly JsonObject[];
  timeoutMs?: number;
  /** False for a call that must finish even if the user cancels. */
  isCancellable?: boolean;
}

const maxOutput = 128 * 1024 * 1024;
const maxMessage = 500;
const callMs = 5 * 60_000;
/** Grace period of kubectl after termination. */
const graceMs = 3_000;

/** First version with server-side apply enabled for all; the flag has this name since 1.16. */
const oldest = [1, 18] as const;
const newest = [1, 99] as const;

/**
 * The program kubectl, started without a shell, with objects on standard input only: names of objects are never
 * arguments. Warnings of the API server are logged once each.
 */
export class Kubectl {
  readonly #options: KubectlOptions;
  readonly #warned = new Set<string>();
  #version: Promise<readonly [number, number]> | undefined;
  #secrets: string[] = [];

  constructor(options: KubectlOptions) {
    this.#options = options;
  }

  /** Removes the values of these Secrets from all messages. */
  hideSecrets(objects: readonly JsonObject[]): void {
    this.#secrets = [...new Set([...this.#secrets, ...objects.flatMap(secretValues)])].sort(
      (a, b) => b.length - a.length,
    );
  }

  /** Returns the flags for validation: unknown fields are warnings, as for operator-controller. */
  async validation(): Promise<string> {
    const [major, minor] = await this.version();
    return major > 1 || minor >= 25 ? '--validate=warn' : '--validate=false';
  }

  /** Returns the flags for reading field managers: kubectl 1.21 and later omit them by default. */
  async managedFields(): Promise<string[]> {
    const [major, minor] = await this.version();
    return major > 1 || minor >= 21 ? ['--show-managed-fields'] : [];
  }

  /** Returns the version of the program. Throws OpmateError UNSUPPORTED if missing or too old. */
  version(): Promise<readonly [number, number]> {
    this.#version ??= this.#askVersion();
    return this.#version;
  }

  async #askVersion(): Promise<readonly [number, number]> {
    const { program } = this.#options;
    const { stdout, errors } = await this.#start(['version', '--client', '-o', 'json'], {
      timeoutMs: 30_000,
    });
    const [, major, minor] = /"gitVersion":\s*"v(\d+)\.(\d+)\./.exec(stdout) ?? [];
    if (major === undefined || minor === undefined) {
      throw new OpmateError('UNSUPPORTED', `${program}: not kubectl${errors[0] ? `: ${errors[0]}` : ''}`, {
        hint: 'specify the program with options.kubectl',
      });
    }
    // kubectl built from source without version information is 0.0: assume a current one.
    const version = major === '0' ? newest : ([Number(major), Number(minor)] as const);
    if (version[0] < oldest[0] || (version[0] === oldest[0] && version[1] < oldest[1])) {
      throw new OpmateError('UNSUPPORTED', `${program}: kubectl ${version.join('.')} is too old`, {
        hint: `use kubectl ${oldest.join('.')} or newer`,
      });
    }
    return version;
  }

  /**
   * Runs kubectl to its end. Errors of the cluster are in the result; throws OpmateError if kubectl is missing,
   * misconfigured, or cannot reach the cluster.
   */
  async run(args: readonly string[], call: KubectlCall = {}): Promise<KubectlAnswer> {
    await this.version();
    const { kubeconfig, context, as: user, asGroups = [] } = this.#options;
    const reply = await this.#start(
      [
        ...(kubeconfig === undefined ? [] : [`--kubeconfig=${kubeconfig}`]),
        ...(context === undefined ? [] : [`--context=${context}`]),
        ...(user === undefined ? [] : [`--as=${user}`]),
        ...asGroups.map((group) => `--as-group=${group}`),
        ...args,
      ],
      call,
    );
    const fault = reply.errors.map(accessFault).find((match) => match !== undefined);
    if (fault !== undefined) throw fault;
    return reply;
  }

  /** Runs kubectl; throws errors of the cluster as OpmateError that starts with `subject`. */
  async expect(subject: string, args: readonly string[], call: KubectlCall = {}): Promise<string> {
    const { stdout, errors } = await this.run(args, call);
    if (errors.length > 0) throw new OpmateError('INVALID', `${subject}: ${errors.join('; ')}`);
    return stdout;
  }

  async #start(args: readonly string[], call: KubectlCall): Promise<KubectlAnswer> {
    const { program, environment, workingDirectory, logger } = this.#options;
    const { objects, timeoutMs = callMs } = call;
    const signal = call.isCancellable === false ? undefined : this.#options.signal;
    const verb = args.find((arg) => !arg.startsWith('-')) ?? '';
    const { stdout, messages, code } = await runToEnd(program, args, {
      name: `kubectl ${verb}`,
      // Disables personal defaults, such as confirmation of deletions.
      environment: { ...environment, LC_ALL: 'C', KUBECTL_KUBERC: 'false', KUBERC: 'off' },
      workingDirectory,
      signal,
      input: objects === undefined ? undefined : listText(objects),
      // Changes that it has started should finish.
      graceMs,
      timeoutMs,
      maxOutput,
      installHint: 'install kubectl, or specify its path with options.kubectl',
    });
    const { warnings, errors } = readMessages(this.#withoutSecrets(messages));
    for (const warning of warnings) {
      if (this.#warned.has(warning)) continue;
      this.#warned.add(warning);
      logger.log('warn', `API server: ${warning}`);
    }
    if (code === 0) return { stdout: stdout.toString('utf8'), errors: [] };
    return {
      stdout: stdout.toString('utf8'),
      errors: errors.length > 0 ? errors : [`kubectl ${verb}: ended with ${code ?? 'a signal'}`],
    };
  }

  #withoutSecrets(text: string): string {
    let clean = text;
    for (const secret of this.#secrets) clean = clean.replaceAll(secret, '***');
    return clean;
  }
}

/** Returns the objects in the output of `kubectl -o json`: none, one, a List, or several in sequence. */
export function parseObjects(text: string): JsonObject[] {
  if (text.trim() === '') return [];
  let value;
  try {
    value = parseGoJson(`[${text.replace(/^\}\n\{/gm, '},\n{')}]`);
  } catch (error) {
    throw new OpmateError('INVALID', 'kubectl: output is not JSON', { cause: error });
  }
  return getList(value).flatMap((object) => {
    if (!isJsonObject(object)) return [];
    const { kind, items } = object;
    return kind === 'List' && Array.isArray(items) ? items.filter(isJsonObject) : [object];
  });
}

function listText(objects: readonly JsonObject[]): string {
  return encodeGoJson({ apiVersion: 'v1', kind: 'List', items: [...objects] });
}

/** Shorter values would make messages unreadable, and hide nothing. */
const minSecret = 4;

/** Returns the values of a Secret as messages quote them: plain, in base64, and escaped as in Go and JSON. */
function secretValues(object: JsonObject): string[] {
  if (object['kind'] !== 'Secret') return [];
  const { data, stringData } = object;
  const encoded = isJsonObject(data) ? Object.values(data).filter((value) => typeof value === 'string') : [];
  const plain = isJsonObject(stringData)
    ? Object.values(stringData).filter((value) => typeof value === 'string')
    : [];
  const decoded = encoded.map((value) => Buffer.from(value, 'base64').toString('utf8'));
  const texts = [...decoded, ...plain];
  const inBase64 = texts.map((text) => Buffer.from(text).toString('base64'));
  const escaped = texts.flatMap((text) =>
    [quoteGo(text), JSON.stringify(text), encodeGoJson(text, { escapeHtml: true })].map((form) =>
      form.slice(1, -1),
    ),
  );
  const trimmed = texts.map((text) => text.trim());
  return [...encoded, ...texts, ...inBase64, ...escaped, ...trimmed].filter(
    (value) => value.length >= minSecret,
  );
}

/**
 * Splits messages of kubectl into warnings of the API server and errors, one line each. Omits advice that does not
 * fit opmate, log lines, and object content quoted by decoders.
 */
export function readMessages(text: string): { warnings: string[]; errors: string[] } {
  const warnings: string[] = [];
  const errors: string[] = [];
  let isAdvice = false;
  for (const line of text.split(/\r?\n/)) {
    if (line === '' || /^[EWIF]\d{4} /.test(line)) continue;
    if (line.startsWith('Warning: ')) warnings.push(inShort(line.slice('Warning: '.length)));
    else if (/^(?:error|Error from server|Error|Unable|The connection|Please enter)\b/.test(line)) {
      isAdvice = false;
      errors.push(line.replace(/^error: /, ''));
    } else if (/^(?:Please review the fields|See '|Examples:|Usage:)/.test(line)) isAdvice = true;
    else if (!isAdvice && errors.length > 0) errors.push(`${errors.pop() ?? ''} ${line.trim()}`);
    else if (!isAdvice) errors.push(line);
  }
  return { warnings, errors: [...new Set(errors.map(inShort))] };
}

function inShort(text: string): string {
  // Decoders quote the bytes around an error, possibly of a Secret.
  const clean = redactForeign(text.replace(/,? ?error found in #\d+ byte of [^]*/, ''));
  return clean.length > maxMessage ? `${clean.slice(0, maxMessage)}…` : clean;
}

const access: readonly (readonly [RegExp, 'NETWORK' | 'AUTH' | 'NOT_FOUND' | 'INVALID', string])[] = [
  [
    /^(?:The connection to the server|Unable to connect to the server)/,
    'NETWORK',
    'check options.kubeconfig and options.context, and that the cluster is reachable',
  ],
  [/must be logged in|\(Unauthorized\)|^Please enter|getting credentials/, 'AUTH', 'log in to the cluster'],
  [/^context .*does not exist|context was not found/, 'NOT_FOUND', 'kubectl config get-contexts lists them'],
  [/error loading config file|no such file or directory/, 'INVALID', 'name the file with options.kubeconfig'],
  [
    /invalid configuration|Missing or incomplete configuration/,
    'INVALID',
    'name the file with options.kubeconfig',
  ],
];

/** Returns the error for a cluster that is not accessible. */
function accessFault(message: string): OpmateError | undefined {
  for (const [pattern, code, hint] of access) {
    if (pattern.test(message)) return new OpmateError(code, `kubectl: ${message}`, { hint });
  }
  return undefined;
}
