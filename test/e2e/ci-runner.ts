/** Runs the ready-made jobs of docs/ci as a runner does. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { load } from 'js-yaml';
import { expect } from 'vitest';
import { projectRoot, runProgram, type Sandbox } from '../support/command-line.js';

export interface ActionStep {
  id?: string;
  name: string;
  if?: string;
  shell: string;
  env?: Record<string, string>;
  run: string;
}
export interface Action {
  inputs: Record<string, { description: string; default: string }>;
  outputs: Record<string, { description: string; value: string }>;
  runs: { using: string; steps: ActionStep[] };
}
export interface Task {
  metadata: { name: string };
  spec: {
    params: { name: string; description: string; default?: string }[];
    results: { name: string }[];
    stepTemplate?: { env: { name: string; value: string }[] };
    steps: { name: string; env?: { name: string; value: string }[]; script: string }[];
  };
}
export interface ScriptResult {
  code: number;
  stdout: string;
  stderr: string;
}

/** Objects of an expression of GitHub, such as `github.event.number`. */
export type Contexts = Record<string, unknown>;

/** Reads a file of docs/ci. */
export const readJobs = (name: string): Promise<string> =>
  readFile(path.join(projectRoot, 'docs', 'ci', name), 'utf8');

/** Returns the value of an expression of GitHub with `||`, `&&`, `==`, `!=`, texts and contexts. */
export function evaluate(expression: string, contexts: Contexts): unknown {
  const [alternatives, parts] = [expression.split(' || '), expression.split(' && ')];
  if (alternatives.length > 1) {
    return alternatives.map((part) => evaluate(part, contexts)).reduce((left, right) => left || right);
  }
  if (parts.length > 1) {
    return parts.map((part) => evaluate(part, contexts)).reduce((left, right) => left && right);
  }
  const [, left, operator, right] = /^(\S+) ([!=]=) (\S+)$/.exec(expression) ?? [];
  if (left !== undefined && right !== undefined) {
    return (evaluate(left, contexts) === evaluate(right, contexts)) === (operator === '==');
  }
  const text = /^'([^']*)'$/.exec(expression)?.[1];
  if (text !== undefined) return text;
  const [first = '', ...names] = expression.split('.');
  if (!(first in contexts)) throw new Error(`no such expression: ${expression}`);
  return names.reduce<unknown>((at, name) => (at as Contexts | undefined)?.[name], contexts[first]) ?? '';
}

const fill = (text: string, contexts: Contexts): string =>
  text.replace(/\$\{\{ (.*?) \}\}/g, (_, expression: string) => String(evaluate(expression, contexts)));

const isTrue = (condition: string | undefined, contexts: Contexts): boolean =>
  condition === undefined || Boolean(evaluate(condition.replace(/^\$\{\{ | \}\}$/g, ''), contexts));

export type CiRunner = ReturnType<typeof createCiRunner>;

/** Runs jobs in a sandbox whose `bin` has the commands that they call. */
export function createCiRunner(sandbox: Sandbox) {
  /** Runs a script from a file, in an environment of its own. */
  async function runScript(
    shell: readonly string[],
    script: string,
    env: Record<string, string>,
    cwd = sandbox.work,
  ): Promise<ScriptResult> {
    const file = path.join(sandbox.temporary, 'step.sh');
    await writeFile(file, script);
    const [command = 'bash', ...args] = [...shell, file];
    const world = { ...sandbox.environment(env), PATH: `${sandbox.work}/bin:${process.env['PATH']}` };
    return runProgram(command, args, { cwd, env: world as NodeJS.ProcessEnv });
  }

  /** Runs the steps of the action with these inputs, up to the first that fails. */
  async function runAction(
    action: Action,
    inputs: Record<string, string>,
    { env: more = {}, github = {} }: { env?: Record<string, string>; github?: Contexts } = {},
  ) {
    for (const name of Object.keys(inputs)) expect(Object.keys(action.inputs)).toContain(name);
    const event = { repository: 'acme/catalog', token: 'token-of-the-job', event: {}, ...github };
    const defaults = Object.entries(action.inputs);
    const values = Object.fromEntries(
      defaults.map(([name, { default: own }]) => [name, inputs[name] ?? fill(own, { github: event })]),
    );
    const [summaryFile, outputFile] = ['summary.md', 'output.txt'].map((name) =>
      path.join(sandbox.temporary, name),
    ) as [string, string];
    for (const file of [summaryFile, outputFile]) await writeFile(file, '');
    const outputs: Record<string, string> = {};
    const ran: string[] = [];
    const all: ScriptResult = { code: 0, stdout: '', stderr: '' };
    for (const step of action.runs.steps) {
      const ids = action.runs.steps.flatMap(({ id }) => (id === undefined ? [] : [[id, { outputs }]]));
      const contexts = { inputs: values, github: event, steps: Object.fromEntries(ids) as unknown };
      if (!isTrue(step.if, contexts)) continue;
      const env = Object.entries(step.env ?? {}).map(([name, text]) => [name, fill(text, contexts)]);
      const done = await runScript(step.shell.replace(' {0}', '').split(' '), step.run, {
        GITHUB_STEP_SUMMARY: summaryFile,
        GITHUB_OUTPUT: outputFile,
        GITHUB_REPOSITORY: event.repository,
        RUNNER_TEMP: sandbox.temporary,
        ...more,
        ...(Object.fromEntries(env) as Record<string, string>),
      });
      ran.push(step.name);
      all.code = done.code;
      all.stdout += done.stdout;
      all.stderr += done.stderr;
      const lines = (await readFile(outputFile, 'utf8')).split('\n').filter((line) => line !== '');
      for (const line of lines) outputs[line.split('=')[0] as string] = line.slice(line.indexOf('=') + 1);
      if (done.code !== 0) break;
    }
    return { ...all, ran, outputs, summary: await readFile(summaryFile, 'utf8') };
  }

  /** Runs the steps of a task, up to the first that fails; what its results are then. */
  async function runTask(task: Task, params: Record<string, string>) {
    const values: Record<string, string> = { 'workspaces.dockerconfig.path': '' };
    for (const name of Object.keys(params)) {
      expect(task.spec.params.map((param) => param.name)).toContain(name);
    }
    for (const { name, default: own } of task.spec.params) {
      values[`params.${name}`] = params[name] ?? own ?? '';
    }
    for (const { name } of task.spec.results) {
      values[`results.${name}.path`] = path.join(sandbox.temporary, `result-${name}`);
    }
    const readVariables = (variables: readonly { name: string; value: string }[] = []) =>
      variables.map(({ name, value }) => {
        const known = values[value.slice(2, -1)];
        if (known === undefined) throw new Error(`${value} is not declared`);
        return [name, known];
      });
    const shared = readVariables(task.spec.stepTemplate?.env);
    let last: ScriptResult = { code: 0, stdout: '', stderr: '' };
    for (const { script, env } of task.spec.steps) {
      expect(script.startsWith('#!/usr/bin/env bash\nset -euo pipefail\n')).toBe(true);
      const variables = Object.fromEntries([...shared, ...readVariables(env)]) as Record<string, string>;
      last = await runScript(['bash'], script, variables);
      if (last.code !== 0) break;
    }
    const results: Record<string, string> = {};
    for (const { name } of task.spec.results) {
      results[name] = await readFile(values[`results.${name}.path`] as string, 'utf8').catch(() => '');
    }
    return { ...last, results };
  }

  /** Runs the workflow of the action's README for an event. */
  async function runWorkflow(
    action: Action,
    workflow: Workflow,
    github: Contexts & { event_name: string },
    localize: (text: string) => string,
  ) {
    expect(Object.keys(workflow.on)).toContain(github.event_name);
    const results = [];
    for (const step of Object.values(workflow.jobs)[0]?.steps ?? []) {
      if (step.uses !== './.github/actions/catalog') continue;
      const inputs = Object.entries(step.with ?? {}).map(([name, text]) => [
        name,
        localize(fill(text, { github })),
      ]);
      const values = Object.fromEntries(inputs) as Record<string, string>;
      results.push(await runAction(action, { ...values, 'base-image': 'scratch' }, { github }));
    }
    expect(results).toHaveLength(1);
    return results[0] as Awaited<ReturnType<typeof runAction>>;
  }

  return { runScript, runAction, runTask, runWorkflow };
}

export interface Workflow {
  on: Record<string, unknown>;
  jobs: Record<string, { steps: { uses?: string; with?: Record<string, string> }[] }>;
}

/** Returns the first YAML block of a page. */
export async function readYamlBlock(page: string): Promise<unknown> {
  const [, text = ''] = /^```yaml\n([^]*?)^```$/m.exec(await readJobs(page)) ?? [];
  return load(text);
}
