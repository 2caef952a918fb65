import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { load } from 'js-yaml';
import { beforeAll, describe, expect, it } from 'vitest';
import { catalogOf } from './catalogs.js';
import {
  type Action,
  type Task,
  type Workflow,
  createCiRunner,
  readJobs,
  readYamlBlock,
} from './ci-runner.js';
import { useCommandInPath } from '../support/command-in-path.js';
import { useSandbox } from '../support/command-line.js';

/** The documented steps of each CI system at the events of a repository. */
const sandbox = useSandbox();
useCommandInPath(sandbox);
const { runScript, runTask, runWorkflow } = createCiRunner(sandbox);
let host = '';

const releases = [
  catalogOf('widget', [{ name: 'widget.v1.0.0' }]),
  catalogOf('widget', [{ name: 'widget.v1.0.0' }, { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' }]),
];

beforeAll(async () => {
  const server = sandbox.start(['oci', 'serve', 'registry', '--port', '0'], { timeoutMs: 600_000 });
  host = new URL(await server.firstLine()).host;
  await sandbox.write({
    '../registries.conf': `[[registry]]\nlocation = "${host}"\ninsecure = true\n`,
  });
});

/** Sets the catalog of the checkout to that of a release. */
const checkOut = (release: number): Promise<void> =>
  sandbox.write({ 'catalog/widget/catalog.json': releases[release] as string });

const inspect = async (image: string): Promise<string> => {
  const { stdout } = await sandbox.run(['list', 'bundles', image, 'widget']);
  return stdout;
};

it('runs the workflow of the GitHub Action: first release, fork, nightly, release', async () => {
  const action = load(await readJobs('github-action/action.yml')) as Action;
  const workflow = (await readYamlBlock('github-action/README.md')) as Workflow;
  const localize = (text: string): string => text.replace('ghcr.io/acme', `${host}/github`);
  const run = (github: { event_name: string; event?: object }) =>
    runWorkflow(action, workflow, { repository: 'acme/catalog', token: '', ...github }, localize);
  const image = `${host}/github/catalog:latest`;

  await checkOut(0);
  const first = await run({ event_name: 'push' });
  expect(first, first.stderr).toMatchObject({ code: 0, outputs: { changed: 'true' } });
  expect(first.stderr).toContain('not found: compared with an empty catalog');
  expect(await inspect(image)).toContain('widget.v1.0.0');

  await checkOut(1);
  const event = { pull_request: { number: 7, head: { repo: { full_name: 'someone/catalog' } } } };
  const fork = await run({ event_name: 'pull_request', event });
  expect(fork, fork.stderr).toMatchObject({ code: 0, outputs: { changed: 'true' } });
  expect(fork.outputs['image']).toBeUndefined();
  expect(await inspect(image)).not.toContain('widget.v1.1.0');

  const nightly = await run({ event_name: 'schedule' });
  expect(nightly).toMatchObject({ code: 0 });
  expect(nightly.outputs['image']).toBeUndefined();

  expect(await run({ event_name: 'push' })).toMatchObject({ code: 0 });
  expect(await inspect(image)).toContain('widget.v1.1.0');
});

interface Job {
  variables?: Record<string, string>;
  script?: string[];
  rules?: { if: string; when?: string }[];
}

it('runs the jobs for GitLab: first release, fork, nightly, release', async () => {
  const jobs = load(await readJobs('gitlab-ci.yml')) as Record<string, Job>;
  const image = `${host}/gitlab/catalog:latest`;
  const isOf = async (job: Job, variables: Record<string, string>): Promise<boolean> => {
    for (const { if: condition, when } of job.rules ?? []) {
      // Comparisons of variables with texts and variables, joined by &&: as in bash.
      const { code } = await runScript(['bash'], `[[ ${condition} ]]`, variables);
      if (code === 0) return when !== 'never';
    }
    return false;
  };
  const run = async (variables: Record<string, string>): Promise<Record<string, number>> => {
    const codes: Record<string, number> = {};
    for (const [name, job] of Object.entries(jobs)) {
      if (name.startsWith('.')) continue;
      const all = {
        CI_COMMIT_BRANCH: '',
        CI_DEFAULT_BRANCH: 'main',
        ...jobs['.opmate']?.variables,
        ...variables,
      };
      if (!(await isOf(job, all))) continue;
      // The default base image is on a public registry.
      const script = (job.script ?? [])
        .join('\n')
        .replace('catalog build ', 'catalog build --base-image scratch ');
      const { code, stderr } = await runScript(['sh', '-e'], script, all);
      codes[name] = code;
      if (code !== 0) throw new Error(stderr);
    }
    return codes;
  };
  const main = { CI_PIPELINE_SOURCE: 'push', CI_COMMIT_BRANCH: 'main', RELEASED: image, IMAGE: image };

  await checkOut(0);
  expect(await run(main)).toEqual({ 'catalog:check': 0, 'catalog:release': 0 });
  expect(await inspect(image)).toContain('widget.v1.0.0');
  await checkOut(1);
  // Variables of the project are not there; those of the file may be.
  const fork = { CI_PIPELINE_SOURCE: 'merge_request_event' };
  expect(await run(fork)).toEqual({ 'catalog:check': 0 });
  expect(await run({ ...fork, RELEASED: image })).toEqual({ 'catalog:check': 0 });
  const report = path.join(sandbox.work, 'catalog-diff.md');
  expect(await readFile(report, 'utf8')).toContain('widget.v1.1.0');
  await rm(report);
  expect(await run({ ...main, CI_PIPELINE_SOURCE: 'schedule' })).toEqual({ 'catalog:check': 0 });
  expect(await inspect(image)).not.toContain('widget.v1.1.0');
  expect(await run(main)).toEqual({ 'catalog:check': 0, 'catalog:release': 0 });
  expect(await inspect(image)).toContain('widget.v1.1.0');
});

it('runs the Tekton task and the script: first release, fork, nightly, release', async () => {
  const task = load(await readJobs('tekton/task.yaml')) as Task;
  const script = await readJobs('check-catalog.sh');
  const forms = {
    tekton: async (released: string, image: string) =>
      runTask(task, { released, image, 'base-image': 'scratch', openshift: '4.18' }),
    script: async (...images: string[]) => {
      const call = `set -- catalog ${images.map((image) => `'${image}'`).join(' ')}\n`;
      const text = script.replace('catalog build ', 'catalog build --base-image=scratch ');
      return runScript(['bash'], call + text, { OPENSHIFT: '4.18' });
    },
  };
  for (const [name, run] of Object.entries(forms)) {
    const image = `${host}/${name}/catalog:latest`;
    await checkOut(0);
    expect(await run(image, image), name).toMatchObject({ code: 0 });
    await checkOut(1);
    // Forks and nightly runs: no image, no credentials.
    expect(await run(image, ''), name).toMatchObject({ code: 0 });
    expect(await inspect(image), name).not.toContain('widget.v1.1.0');
    expect(await run(image, image), name).toMatchObject({ code: 0 });
    expect(await inspect(image), name).toContain('widget.v1.1.0');
  }
});

interface Pipeline {
  spec: {
    params: { name: string; default?: string }[];
    tasks: { name: string; taskRef: { name: string }; params: { name: string; value: string }[] }[];
  };
}

describe('docs/ci/tekton for Konflux', () => {
  const tasks = new Map<string, Task>();
  let digest = '';

  beforeAll(async () => {
    for (const name of ['gate-task', 'add-fragment-task']) {
      const task = load(await readJobs(`tekton/${name}.yaml`)) as Task;
      tasks.set(task.metadata.name, task);
    }
    const build = async (release: number, tag: string): Promise<string> => {
      await sandbox.write({ [`fragments/${tag}/widget/catalog.json`]: releases[release] as string });
      const target = `${host}/konflux/${tag}:v1`;
      const args = ['catalog', 'build', `fragments/${tag}`, '-t', target, '-i', 'scratch'];
      const { stdout } = await sandbox.run(args);
      return stdout.trim().replace(/^.*@/, '');
    };
    await build(0, 'index');
    digest = await build(1, 'fragment');
  });

  /** Runs the tasks of the pipeline one after another; the codes and results of those that ran. */
  async function runPipeline(values: Record<string, string>) {
    const { spec } = load(await readJobs('tekton/pipeline.yaml')) as Pipeline;
    const params = new Map(spec.params.map(({ name, default: own = '' }) => [name, values[name] ?? own]));
    const done: Record<string, Awaited<ReturnType<typeof runTask>>> = {};
    for (const { name, taskRef, params: own } of spec.tasks) {
      const filled = own.map((param) => [
        param.name,
        param.value.replace(/\$\(params\.([\w-]+)\)/g, (_, key: string) => params.get(key) ?? `${key}?`),
      ]);
      const task = tasks.get(taskRef.name) as Task;
      const result = await runTask(task, Object.fromEntries(filled) as Record<string, string>);
      done[name] = result;
      if (result.code !== 0) break;
    }
    return done;
  }

  it('adds a fragment to an index after the gates passed', async () => {
    const image = `${host}/konflux/index:v2`;
    const values = {
      'fragment-url': `${host}/konflux/fragment:v1`,
      'fragment-digest': digest,
      index: `${host}/konflux/index:v1`,
      image,
    };
    const refused = await runPipeline(values);
    // The fragment is built on no base image that Konflux knows.
    expect(Object.keys(refused)).toEqual(['gate']);
    expect(refused['gate']).toMatchObject({ code: 3 });
    expect(JSON.parse(refused['gate']?.results['TEST_OUTPUT'] ?? '')).toMatchObject({ result: 'FAILURE' });
    const passed = await runPipeline({ ...values, gates: 'pruning,breaking' });
    expect(passed['add-fragment'], passed['add-fragment']?.stderr).toMatchObject({ code: 0 });
    expect(passed['add-fragment']?.results['IMAGE']).toMatch(/konflux\/index@sha256:/);
    expect(await inspect(image)).toContain('widget.v1.1.0');
  });

  it('says in TEST_OUTPUT that a gate failed, without failing the task', async () => {
    const gate = tasks.get('operator-gate') as Task;
    const params = {
      IMAGE_URL: `${host}/konflux/fragment:v1`,
      IMAGE_DIGEST: digest,
      INDEX: `${host}/konflux/index:v1`,
    };
    const failed = await runTask(gate, params);
    expect(failed, failed.stderr).toMatchObject({ code: 0 });
    expect(failed.stdout).toContain('validate-fbc: FAILURE');
    expect(JSON.parse(failed.results['TEST_OUTPUT'] ?? '')).toMatchObject({
      result: 'FAILURE',
      note: 'failed gates: validate-fbc',
    });
    const passed = await runTask(gate, { ...params, GATES: 'pruning,breaking' });
    expect(JSON.parse(passed.results['TEST_OUTPUT'] ?? '')).toMatchObject({ result: 'SUCCESS', failures: 0 });
    // No verdict at all: the index is not there.
    expect((await runTask(gate, { ...params, INDEX: `${host}/konflux/none:v1` })).code).toBe(1);
  });

  it('passes parameters to its scripts as variables only', () => {
    for (const { spec } of tasks.values()) {
      for (const { script } of spec.steps) expect(script).not.toMatch(/\$\((params|workspaces|results)/);
    }
  });
});
