import { beforeAll, describe, expect, it } from 'vitest';
import { findViolations, hasBrowser, requirePhonePage, screens, usePhone } from '../support/browser.js';
import { useSandbox } from '../support/command-line.js';
import { graphText } from '../support/releases.js';
import { catalogOf } from './catalogs.js';

const sandbox = useSandbox();
const olm = 'operators.coreos.com/v1alpha1';
const hostile = '<img src=x onerror="window.ran=1">';
let url: string;

beforeAll(async () => {
  const entries = [
    { name: 'demo.v1' },
    { name: 'demo.v2', replaces: 'demo.v1' },
    { name: 'demo.v3', replaces: 'demo.v2' },
  ];
  const metadata = (name: string): object => ({ name, namespace: 'app' });
  await sandbox.write({
    'catalog/catalog.json': catalogOf('demo', entries),
    'graphs/amd64-stable-4.19.json': graphText(['4.18.9', '4.19.3'], [['4.18.9', '4.19.3']]),
    'cluster.yaml': {
      ...{ apiVersion: 'v1', kind: 'List' },
      items: [
        {
          ...{ apiVersion: 'config.openshift.io/v1', kind: 'ClusterVersion', metadata: { name: 'version' } },
          status: { desired: { version: '4.18.9' } },
        },
        { apiVersion: olm, kind: 'CatalogSource', metadata: metadata('main'), spec: { image: 'x' } },
        { apiVersion: 'operators.coreos.com/v1', kind: 'OperatorGroup', metadata: metadata('all'), spec: {} },
        {
          ...{ apiVersion: olm, kind: 'Subscription', metadata: metadata('demo') },
          spec: { name: 'demo', channel: 'stable', source: 'main', sourceNamespace: 'app' },
          status: { installedCSV: 'demo.v1', currentCSV: 'demo.v1' },
        },
        {
          apiVersion: olm,
          kind: 'ClusterServiceVersion',
          metadata: metadata('demo.v1'),
          spec: { version: '1.0.0' },
        },
        {
          apiVersion: olm,
          kind: 'ClusterServiceVersion',
          metadata: metadata(hostile),
          spec: { version: '1.0.0' },
        },
      ],
    },
  });
  const command = sandbox.serve([
    ...['view', '--snapshot', 'cluster.yaml', '--catalog', 'main=catalog', '--upgrade-to', '4.19'],
    ...['--catalog', 'v4.18=catalog', '--catalog', 'v4.19=catalog', '--graph', 'graphs'],
  ]);
  url = await command.firstLine();
});

describe('opmate view --snapshot', () => {
  it('opens the cluster, with the first catalog', async () => {
    expect(url).toMatch(/#\/cluster$/);
    const [overview, cluster] = await Promise.all(
      ['api/catalog', 'api/cluster'].map(async (name) => (await fetch(new URL(name, url))).json()),
    );
    expect(overview).toMatchObject({ name: 'catalog', hasCluster: true });
    expect(cluster).toMatchObject({
      release: '4.18.9',
      operators: [
        { package: 'demo', state: 'upgrades', upgrades: [{ name: 'demo.v2' }, { name: 'demo.v3' }] },
        { installed: hostile, state: 'current' },
      ],
      hops: [{ to: '4.19', isBlocked: false, releases: [{ version: '4.19.3' }] }],
    });
  });

  it('needs a catalog', async () => {
    const { code, stderr } = await sandbox.run(['view', '--snapshot', 'cluster.yaml']);
    expect(code).toBe(2);
    expect(stderr).toContain('missing argument: catalog');
  });
});

describe.skipIf(!hasBrowser)('the cluster in a browser', () => {
  const getPage = usePhone(() => url, '.operators li');

  it('fits a phone, dark, with names as text', async () => {
    const page = getPage();
    await requirePhonePage(page);
    expect(await page.locator('.operators').innerText()).toContain(hostile);
  });

  it('has names for screen readers, and the plan as a list of updates', async () => {
    const tree = await getPage().locator('main').ariaSnapshot();
    for (const part of [
      '- heading "Cluster" [level=1]',
      '- combobox "State"',
      '- list "Operators"',
      '- list "Updates"',
      '- heading "4.18 → 4.19 possible" [level=3]',
    ])
      expect(tree).toContain(part);
  });

  it('filters by state and marks the path of an operator in its graph, by keyboard', async () => {
    const page = getPage();
    const state = page.getByLabel('State');
    await state.focus();
    await page.keyboard.press('c');
    await expect.poll(() => page.locator('.operators > li').count()).toBe(1);
    expect(page.url()).toContain('#/cluster?state=current');
    await state.selectOption('');
    await expect.poll(() => page.locator('.operators > li').count()).toBe(2);
    await page.locator('.operators a').first().focus();
    await page.keyboard.press('Enter');
    await page.getByText('2 upgrades').waitFor();
    expect(page.url()).toContain('#/package/demo/stable?from=demo.v1&to=demo.v3');
    await expect.poll(() => page.locator('.drawing .step').count()).toBe(2);
  });

  it.each(screens)('has no violations of axe-core: %s, %d px', async (colorScheme, width) => {
    const page = getPage();
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await page.goto(url);
    await page.locator('.operators li').first().waitFor();
    expect(await findViolations(page)).toEqual([]);
  });
});
