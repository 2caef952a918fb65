import { readLimited } from '../../oci/image/read-limited.js';
import { ErrorList } from '../../core/diagnostics-error.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { findChartImages } from '../../helm/chart-images.js';
import { matchVersion, newestFirst } from '../../helm/chart-index.js';
import { notInArchive } from '../../oci/archive-set/archive-set-reader.js';
import type { Repository } from '../../oci/registry/repository.js';
import { type ImageSetLock, type LockedChart, type LockedImage, isSameName } from '../lock/lock.js';
import type { ChartConfig, HelmConfig } from './helm-config.js';
import {
  type OpenedChart,
  type OpenedCharts,
  maxChartBytes,
  readPackedChart,
  toConfig,
  toRenderOptions,
} from './open-charts.js';

interface ArchivedChartsOptions extends CancelOptions {
  lock: ImageSetLock;
  findContent: (image: LockedImage) => Repository;
}

/** Reads the charts of a configuration from an archive only. Throws OpmateError NOT_FOUND for missing charts. */
export async function openArchivedCharts(
  helm: HelmConfig,
  options: ArchivedChartsOptions,
): Promise<OpenedCharts> {
  const { charts: locked = [] } = options.lock;
  const wanted: { config: ChartConfig; locked: LockedChart; repository: string | undefined }[] = [];
  const errors = new ErrorList();
  const want = (
    config: ChartConfig,
    chart: LockedChart | undefined,
    label: string,
    repository?: string,
  ): void => {
    if (chart !== undefined) wanted.push({ config, locked: chart, repository });
    else errors.add(notInArchive(label));
  };
  for (const config of helm.local) {
    const chart = locked.find(({ source }) => source === config.path);
    want(config, chart, `chart ${config.path}`);
  }
  for (const { name, url, charts, place } of helm.repositories) {
    const available = locked.filter(({ source }) => source === url);
    if (charts === undefined)
      for (const chart of available)
        wanted.push({ config: toConfig({ place }), locked: chart, repository: name });
    for (const config of charts ?? []) {
      const label = `chart ${name}/${config.name}`;
      const versions = newestFirst(available.filter((chart) => chart.name === config.name));
      want(config, matchVersion(versions, config.version, label), label, name);
    }
  }
  errors.throwIfAny();
  const charts: OpenedChart[] = [];
  for (const item of wanted) charts.push(await openArchived(item, options));
  return { charts, close: () => Promise.resolve() };
}

async function openArchived(
  {
    config,
    locked,
    repository,
  }: { config: ChartConfig; locked: LockedChart; repository: string | undefined },
  { lock, findContent, signal }: ArchivedChartsOptions,
): Promise<OpenedChart> {
  const label = `chart ${repository === undefined ? locked.source : `${repository}/${locked.name}`} ${locked.version}`;
  const image = lock.images.find(({ kind, ...name }) => kind === 'chart' && isSameName(name, locked));
  const layer = image?.contents.manifests[0]?.blobs[1];
  if (image === undefined || layer === undefined) throw notInArchive(label);
  const stream = await findContent(image).openBlob(layer, { signal });
  const bytes = await readLimited(stream, maxChartBytes, label);
  const chart = await readPackedChart(bytes, label, { signal });
  const { name, version, metadata } = chart;
  const { digest, size } = layer;
  return {
    config,
    label,
    source: locked.source,
    repository,
    packed: { name, version, metadata, digest, size, file: '' },
    needed: await findChartImages(chart, label, toRenderOptions(config)),
  };
}
