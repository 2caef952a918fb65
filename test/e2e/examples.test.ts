import { describe, expect, it } from 'vitest';
import type { Command } from 'commander';
import { createCommandLine } from '../../src/cli/program.js';
import { runProgram, useSandbox } from '../support/command-line.js';
import { createWorld } from '../unit/cli/world.js';
import { useExampleWorld } from './example-world.js';

const sandbox = useSandbox();
const world = useExampleWorld(sandbox);
const commandLine = createCommandLine(createWorld(), 'opmate', {
  run: () => Promise.resolve(),
  onCommand: () => undefined,
  print: () => undefined,
});
await commandLine.loadBelow(commandLine.program, { deeply: true });

interface RunnableExample {
  command: string;
  line: string;
}

/** The examples of all commands. */
function examplesOf(command: Command, words: readonly string[] = []): RunnableExample[] {
  const own = Object.values(commandLine.findDeclaration(command)?.examples ?? {});
  return [
    ...own.map((line) => ({ command: words.join(' '), line })),
    ...command.commands.flatMap((sub) => examplesOf(sub, [...words, sub.name()])),
  ];
}

/** Examples that cannot run here, each with the test of their command. */
const elsewhere: Readonly<Record<string, string>> = {
  'opmate probe --addr registry.example.com:50051 --tls --tls-ca-cert ca.crt': 'probe.test.ts, with TLS',
  'opmate repo release demo 1.3.0 --image registry.example.com/demo/bundle:v1.3.0 --dry-run':
    'repo/release-bundle.test.ts, with a matching template',
  'opmate mirror delete --generate --previous working-dir/opmate.lock.previous.json docker://registry.example.com/demo-mirror':
    'mirror-delete.test.ts, after two runs',
  'opmate registry init --configmap-name operators --configmap-namespace olm --to new.db':
    'registry-serve.test.ts, with an API server',
  'opmate repo changes --base origin/main': 'repo/check-repository.test.ts, with a Git repository',
  'opmate repo changes --base origin/main -o json': 'repo/check-repository.test.ts, with a Git repository',
};

/** Examples that end with another code than 0, because they find something. */
const codes: Readonly<Record<string, number>> = {
  'catalog diff': 3,
  'catalog lifecycle diff': 3,
  'cluster migrate': 3,
  'mirror diff': 3,
  'repo check': 3,
  'repo status': 3,
};

/** Examples that need a cluster: its commands are tested in test/cluster. */
const isOfCluster = (line: string): boolean => /^opmate deployment (?!render|diff)/.test(line);

/** Commands that go on until they are stopped; the first line that they print is waited for. */
const servers: ReadonlySet<string> = new Set(['oci serve', 'view', 'serve', 'registry serve']);

/** Servers listen on free ports, and clients ask the servers of the world. */
function atFreePorts(command: string, line: string): string {
  if (command === 'probe') return line === 'opmate probe' ? `${line} --addr ${world.grpcAddress()}` : line;
  if (command.startsWith('catalogs ')) return line.replace('http://127.0.0.1:8080', world.catalogsUrl());
  if (command !== 'serve' && command !== 'registry serve') return line;
  const lineAtFree = line.replaceAll('127.0.0.1:8080', '127.0.0.1:0');
  return lineAtFree.includes('--port') ? lineAtFree : `${lineAtFree} --port 0`;
}

/** The words of a line without expansions. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g)].map(([word]) => word.replace(/["']/g, ''));
}

/** Runs a line in a copy of the world, as bash does. */
function runLine(
  line: string,
  directory: string,
  isServer: boolean,
): Promise<{ code: number; stdout: string; stderr: string }> {
  // A server is told to stop once it has begun to serve.
  const script = isServer
    ? `${line} > out 2> err & pid=$!
       until [ -s out ] || grep -qs 'serving registry' err || ! kill -0 $pid; do sleep 0.1; done
       kill $pid; wait $pid; code=$?; cat err >&2; exit $code`
    : line;
  const env = sandbox.environment(world.environment()) as NodeJS.ProcessEnv;
  return runProgram('bash', ['-o', 'pipefail', '-c', script], { cwd: directory, env, timeout: 150_000 });
}

describe('examples of --help', () => {
  // Commands below alpha and `bundle deployment` have the files of others.
  const examples = examplesOf(commandLine.program).filter(
    ({ command }) => !/^(?:alpha|bundle deployment) /.test(command),
  );

  it('exist for every command, two to four each', () => {
    const counts = new Map<string, number>();
    for (const { command } of examples) counts.set(command, (counts.get(command) ?? 0) + 1);
    expect([...counts].filter(([, count]) => count < 2 || count > 4)).toEqual([]);
  });

  it('all run, except those that are tested elsewhere', () => {
    const lines = new Set(examples.map(({ line }) => line));
    expect(Object.keys(elsewhere).filter((line) => !lines.has(line))).toEqual([]);
  });

  it.each(examples.filter(({ line }) => elsewhere[line] === undefined && !isOfCluster(line)))(
    '$line',
    async ({ command, line }) => {
      const directory = await world.copy();
      const local = atFreePorts(command, world.localize(line));
      const isServer = servers.has(command);
      // A shell only where the line needs one.
      const needsShell = isServer || /[<>|&;$]/.test(line.replace(/"[^"]*"|'[^']*'/g, ''));
      const { code, stderr } = needsShell
        ? await runLine(local, directory, isServer)
        : await sandbox.run(wordsOf(local).slice(1), { cwd: directory, env: world.environment() });
      expect({ line, code, stderr: code === (codes[command] ?? 0) ? '' : stderr }).toEqual({
        line,
        code: codes[command] ?? 0,
        stderr: '',
      });
    },
  );
});
