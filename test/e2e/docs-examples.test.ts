import { spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectRoot, useSandbox } from '../support/command-line.js';
import { useExampleWorld } from './example-world.js';

const sandbox = useSandbox();
const world = useExampleWorld(sandbox);

/** Commands of README and docs that do not run here, each with the reason. Keep it short. */
const notRun: Readonly<Record<string, string>> = {
  'npm run demo': 'demo.test.ts',
  'npm run executable': 'executable.test.ts',
  'npm test': 'these tests',
  'npm ci && npm run build && npm link': 'changes the machine; package.test.ts',
  'npm run image -- --executable --base gcr.io/distroless/cc-debian12@sha256:… --to registry.example.com/tools/opmate:v1':
    'needs gcr.io; image.test.ts',
  'npm install /path/to/the/clone': 'package.test.ts',
  'opmate mirror delete --generate --previous working-dir/opmate.lock.previous.json docker://mirror.example.com/demo-mirror':
    'mirror-delete.test.ts, after two runs',
  'htpasswd -B -c users.htpasswd ann': 'asks for a password',
  'cosign generate-key-pair': 'cosign is not installed',
  'oras discover registry.example.com/demo/catalog:v2': 'oras is not installed',
  'kubectl -n olmv1-system port-forward svc/catalogd-service 8443:443 &': 'needs a cluster',
  'opmate render --skip-tls-verify https://localhost:8443/catalogs/operatorhubio -o yaml': 'needs a cluster',
  'rsync -a --exclude /catalogs public/ web:/srv/catalogs/ && rsync -a public/ web:/srv/catalogs/':
    'needs a web server',
};

/** A command without the comment behind it. */
const withoutComment = (text: string): string => text.replace(/ +# .*$/, '').trim();

/** Pages that are generated, whose examples are those of `--help`. */
const generated = path.join('docs', 'reference');
/** Page whose examples need a cluster: test/cluster/docs-deployments.test.ts. */
const ofCluster = path.join('docs', 'deployments.md');
const pages = [
  'README.md',
  ...readdirSync(path.join(projectRoot, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((name) => path.join('docs', name))
    .filter((name) => name.endsWith('.md') && !name.startsWith(generated) && name !== ofCluster),
].sort();

interface Step {
  line: number;
  /** A command, or the text of a file. */
  text: string;
  /** The name of the file that the page shows. */
  file?: string;
  /** What a `console` block shows below the command. */
  output?: string;
}

/**
 * Returns what a page has its reader do, in order: commands of `sh` blocks, commands after `$` of `console` blocks with
 * their output, and files: blocks whose first line is a comment with their name.
 */
function readSteps(text: string): Step[] {
  const steps: Step[] = [];
  for (const block of text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)) {
    const [, kind = '', content = ''] = block;
    const first = text.slice(0, block.index).split('\n').length + 1;
    const file = /^# ([\w./-]+\.(?:ya?ml|json))\n/.exec(content)?.[1];
    if (file !== undefined && kind === 'yaml') steps.push({ line: first, text: content, file });
    if (kind === 'sh') steps.push(...readCommands(content.split('\n'), first));
    if (kind !== 'console') continue;
    const lines = content.split('\n').slice(0, -1);
    for (let at = 0; at < lines.length;) {
      const line = first + at;
      const command = takeCommand(lines, at, (text) => text.replace(/^\$ /, ''));
      at += command.length;
      const output: string[] = [];
      while (at < lines.length && !lines[at]?.startsWith('$ ')) output.push(`${lines[at++]}\n`);
      steps.push({ line, text: command.join('\n'), output: output.join('') });
    }
  }
  return steps;
}

function readCommands(lines: readonly string[], first: number): Step[] {
  const steps: Step[] = [];
  for (let at = 0; at < lines.length;) {
    const command = takeCommand(lines, at, (text) => text);
    if (/^[^#\s]/.test(command[0] ?? '')) steps.push({ line: first + at, text: command.join('\n') });
    at += command.length;
  }
  return steps;
}

/** Returns the lines of the command that begins here: with continuations and here-documents. */
function takeCommand(lines: readonly string[], at: number, strip: (text: string) => string): string[] {
  const command = [strip(lines[at] ?? '')];
  const end = /<<'?(\w+)'?/.exec(command[0] ?? '')?.[1];
  while (at + command.length < lines.length) {
    if (end === undefined ? !command.at(-1)?.endsWith('\\') : command.at(-1) === end) break;
    command.push(lines[at + command.length] ?? '');
  }
  return command;
}

/** Whether a command serves until it is stopped. */
const isServer = (text: string): boolean =>
  /^opmate (?:view|serve|registry serve|oci serve) /.test(text) && !/--export|--help|& *(?:#.*)?$/.test(text);

/** Servers listen on free ports; browsers stay closed. */
const atFreePort = (text: string): string =>
  isServer(text)
    ? `${text
        .replaceAll('127.0.0.1:8080', '127.0.0.1:0')
        .replace(/ --http(?= |$)(?! +[\d[])/, '$& 127.0.0.1:0')
        .replace(/ *(?:#.*)?$/, '')}${/^opmate (?:view|oci)/.test(text) ? '' : ' --port 0'}`
    : text;

/** Returns a script that runs commands one after another, each with its output and exit code in files. */
function scriptOf(steps: readonly Step[]): string {
  const lines = ['code=0'];
  for (const [i, { text, file, output = '…' }] of steps.entries()) {
    if (file !== undefined) {
      lines.push(`mkdir -p "$(dirname ${file})"; cat > ${file} <<'END OF FILE'`, `${text}END OF FILE`);
      continue;
    }
    const to = `>>"$OUT/${i}.out" 2>&1 </dev/null`;
    if (isServer(text)) {
      // A server is told to stop once it has printed as much as the page shows.
      const shown = Math.max(1, output.split('\n').filter((line) => !/^(?:…)?$/.test(line.trim())).length);
      lines.push(
        `: >"$OUT/${i}.out"; ${atFreePort(text)} ${to} & pid=$!`,
        `until [ "$(wc -l <"$OUT/${i}.out")" -ge ${shown} ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done`,
        'kill $pid; wait $pid; code=$?',
      );
    } else {
      lines.push(`(exit $code)`, `{ ${text}`, `} ${to}`, 'code=$?');
      const isBackground = /& *(?:#.*)?$/.test(text);
      if (isBackground)
        lines.push(`until [ -s "$OUT/${i}.out" ] || ! kill -0 $! 2>/dev/null; do sleep 0.1; done`);
    }
    lines.push(`echo $code >"$OUT/${i}.code"`);
  }
  return `${lines.join('\n')}\nkill $(jobs -p) 2>/dev/null\nexit 0\n`;
}

/** Runs a script to its end, in a process group that ends with it. */
function runScript(script: string, cwd: string, out: string): Promise<void> {
  const env = sandbox.environment({ ...world.environment(), OUT: out, TERM: 'dumb' });
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-c', script], { cwd, env, stdio: 'ignore', detached: true });
    child.once('error', reject);
    child.once('exit', () => {
      try {
        process.kill(-(child.pid as number), 'SIGKILL');
      } catch {
        // Nothing is left of the group.
      }
      resolve();
    });
  });
}

/**
 * What a page shows, as a pattern: `…` is the rest of a word or line, and as a line any lines. Sizes in bytes may differ,
 * as compressed layers name the registry.
 */
function patternOf(shown: string): RegExp {
  const escaped = (text: string): string =>
    text
      .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replace(/\d+(?:\\\.\d)? (?:[KMG]iB|bytes)/g, '[\\d.]+ (?:[KMG]iB|bytes)');
  const lines = world.localize(shown).split('\n').slice(0, -1);
  const source = lines.map((line) =>
    line.trim() === '…' ? '(?:.*\\n)*?' : `${line.split('…').map(escaped).join('.*?')}\\n`,
  );
  return new RegExp(`^${source.join('')}$`);
}

describe('examples of README and docs', () => {
  const all = new Map(
    pages.map((page) => [page, readSteps(readFileSync(path.join(projectRoot, page), 'utf8'))]),
  );

  it('skips only commands that exist', () => {
    const texts = new Set([...all.values()].flat().map(({ text }) => withoutComment(text)));
    expect(Object.keys(notRun).filter((text) => !texts.has(text))).toEqual([]);
  });

  it.each([...all].filter(([, steps]) => steps.length > 0))(
    'run as they are written: %s',
    async (page, steps) => {
      const directory = await world.copy();
      const out = await world.emptyDirectory();
      const run = steps.filter(({ text }) => notRun[withoutComment(text)] === undefined);
      const localized = run.map((step) => ({ ...step, text: world.localize(step.text) }));
      await runScript(scriptOf(localized), directory, out);
      const read = (name: string): Promise<string> =>
        readFile(path.join(out, name), 'utf8').catch(() => 'not run');
      const wrong: object[] = [];
      for (const [i, { line, text, file, output }] of run.entries()) {
        if (file !== undefined) continue;
        const [printed, code] = [await read(`${i}.out`), (await read(`${i}.code`)).trim()];
        const mayFail = run[i + 1]?.text === 'echo $?' || text.includes(`exit code ${code}`);
        const asShown = output === undefined || patternOf(output).test(printed);
        if ((code !== '0' && !mayFail) || !asShown) {
          wrong.push({ at: `${page}:${line}`, text, code, printed, ...(!asShown && { output }) });
        }
      }
      // For whoever writes docs: what the commands of a page print.
      const show = process.env['OPMATE_SHOW'];
      if (show !== undefined) {
        const shown = await Promise.all(
          run.map(async ({ text }, i) => ({ text, printed: await read(`${i}.out`) })),
        );
        await writeFile(path.join(show, `${page.replaceAll('/', '_')}.json`), JSON.stringify(shown));
      }
      expect(wrong).toEqual([]);
    },
    300_000,
  );
});
