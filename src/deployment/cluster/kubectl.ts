import { runToEnd } from '../../files/run-program.js';
import { OpmateError, redact } from '../../core/errors.js';
import { encodeGoJson, parseGoJson } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { getList } from '../../document/json-fields.js';
import type { Logger } from '../../core/log.js';

/** Which cluster, and what reaches it. */
interface KubectlOptions {
  /** The program, looked up in PATH where it is no path. */
  program: string;
  kubeconfig?: string | undefined;
  context?: string | undefined;
  /** Given to kubectl whole: plug-ins for credentials read what nobody can list. */
  environment: Readonly<Record<string, string | undefined>>;
  workingDirectory: string;
  logger: Logger;
  signal?: AbortSignal | undefined;
}

/** What one call gave. */
interface KubectlAnswer {
  stdout: string;
  /** What went wrong, one line each; empty where nothing did. */
  errors: string[];
}

/** What one call is given. */
interface KubectlCall {
  /** Objects for `-f -`. */
  objects?: readonly JsonObject[];
  timeoutMs?: number;
  /** False where the call has to come to its end although the user no longer waits. */
  isCancellable?: boolean;
}

const maxOutput = 128 * 1024 * 1024;
const maxMessage = 500;
const callMs = 5 * 60_000;
/** How long kubectl may take to end after it was told to. */
const graceMs = 3_000;

/** Server-side apply is there for everybody since this version, under this name of the flag since 1.16. */
const oldest = [1, 18] as const;
const newest = [1, 99] as const;

/**
 * The program kubectl, started without a shell, with objects on its standard input only: what objects are called is
 * never an argument. Warnings of the API server go to the logger, each once.
 */
export class Kubectl {
  readonly #options: KubectlOptions;
  readonly #warned = new Set<string>();
  #version: Promise<readonly [number, number]> | undefined;
  #secrets: string[] = [];

  constructor(options: KubectlOptions) {
    this.#options = options;
  }

  /** Keeps the values in these Secrets out of all messages. */
  hideSecrets(objects: readonly JsonObject[]): void {
    this.#secrets = [...new Set([...this.#secrets, ...objects.flatMap(secretValues)])].sort(
      (a, b) => b.length - a.length,
    );
  }

  /** Flags by which objects are validated: what the cluster does not know is a warning, as for operator-controller. */
  async validation(): Promise<string> {
    const [major, minor] = await this.version();
    return major > 1 || minor >= 25 ? '--validate=warn' : '--validate=false';
  }

  /** The version of the program. Throws OpmateError UNSUPPORTED where it is missing or too old. */
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
      throw new OpmateError('UNSUPPORTED', `${program}: is not kubectl${errors[0] ? `: ${errors[0]}` : ''}`, {
        hint: 'specify the program with --kubectl',
      });
    }
    // Built from its sources without more, kubectl is 0.0: of today, as far as anybody can tell.
    const version = major === '0' ? newest : ([Number(major), Number(minor)] as const);
    if (version[0] < oldest[0] || (version[0] === oldest[0] && version[1] < oldest[1])) {
      throw new OpmateError('UNSUPPORTED', `${program}: kubectl ${version.join('.')} is too old`, {
        hint: `use kubectl ${oldest.join('.')} or newer`,
      });
    }
    return version;
  }

  /**
   * Runs kubectl to its end. What the cluster says against it is in the answer; OpmateErrors are thrown where kubectl
   * is missing, its configuration is wrong, or the cluster is not reached.
   */
  async run(args: readonly string[], call: KubectlCall = {}): Promise<KubectlAnswer> {
    await this.version();
    const { kubeconfig, context } = this.#options;
    const reply = await this.#start(
      [
        ...(kubeconfig === undefined ? [] : [`--kubeconfig=${kubeconfig}`]),
        ...(context === undefined ? [] : [`--context=${context}`]),
        ...args,
      ],
      call,
    );
    const fault = reply.errors.map(accessFault).find((match) => match !== undefined);
    if (fault !== undefined) throw fault;
    return reply;
  }

  /** The same; whatever the cluster says against it is thrown as OpmateError, `subject` first. */
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
      // Nobody's own defaults, as of asking before each deletion.
      environment: { ...environment, LC_ALL: 'C', KUBECTL_KUBERC: 'false', KUBERC: 'off' },
      workingDirectory,
      signal,
      input: objects === undefined ? undefined : listText(objects),
      // What it has begun to change should come to its end.
      graceMs,
      timeoutMs,
      maxOutput,
      installHint: 'install kubectl, or specify its path with --kubectl',
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

/** The objects in what kubectl prints with `-o json`: none, one, a List, or one after another. */
export function readObjects(text: string): JsonObject[] {
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

/** Values shorter than this would make messages unreadable, and hide nothing. */
const minSecret = 4;

/** What a Secret holds, as it stands there and decoded. */
function secretValues(object: JsonObject): string[] {
  if (object['kind'] !== 'Secret') return [];
  const { data, stringData } = object;
  const encoded = isJsonObject(data) ? Object.values(data).filter((value) => typeof value === 'string') : [];
  const plain = isJsonObject(stringData)
    ? Object.values(stringData).filter((value) => typeof value === 'string')
    : [];
  const decoded = encoded.map((value) => Buffer.from(value, 'base64').toString('utf8'));
  return [...encoded, ...decoded, ...plain].filter((value) => value.length >= minSecret);
}

/**
 * Takes what kubectl says apart: warnings of the API server, and errors, each in one line. Advice of kubectl that
 * does not fit opmate, log lines, and pieces of objects that decoders quote are left out.
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
  // Decoders quote the bytes around a fault, which may be those of a Secret.
  const clean = redact(text.replace(/,? ?error found in #\d+ byte of [^]*/, ''));
  return clean.length > maxMessage ? `${clean.slice(0, maxMessage)}…` : clean;
}

const access: readonly (readonly [RegExp, 'NETWORK' | 'AUTH' | 'NOT_FOUND' | 'INVALID', string])[] = [
  [
    /^(?:The connection to the server|Unable to connect to the server)/,
    'NETWORK',
    'check --kubeconfig and --context, and that the cluster is reachable',
  ],
  [
    /must be logged in|\(Unauthorized\)|^Please enter|getting credentials/,
    'AUTH',
    'log in to the cluster with what the kubeconfig names',
  ],
  [/^context .*does not exist|context was not found/, 'NOT_FOUND', 'kubectl config get-contexts lists them'],
  [/error loading config file|no such file or directory/, 'INVALID', 'name the file with --kubeconfig'],
  [/invalid configuration|Missing or incomplete configuration/, 'INVALID', 'name the file with --kubeconfig'],
];

/** The error of who does not even reach the cluster. */
function accessFault(message: string): OpmateError | undefined {
  for (const [pattern, code, hint] of access) {
    if (pattern.test(message)) return new OpmateError(code, `kubectl: ${message}`, { hint });
  }
  return undefined;
}
