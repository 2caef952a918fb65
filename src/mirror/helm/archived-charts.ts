import { readLimited } from '../../oci/image/read-limited.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { findChartImages } from '../../helm/chart-images.js';
import { matchVersion, newestFirst } from '../../helm/chart-index.js';
import type { Repository } from '../../oci/registry/repository.js';
import type { ImageSetLock, LockedChart, LockedImage } from '../lock/lock.js';
import type { ChartConfig, HelmConfig } from './helm-config.js';
import { type OpenedChart, type OpenedCharts, maxChartBytes, readPackedChart } from './open-charts.js';

interface ArchivedChartsOptions extends CancelOptions {
  lock: ImageSetLock;
  /** Returns the content of a chart. */
  contentOf: (image: LockedImage) => Repository;
}

/**
 * Reads the charts of a configuration from an archive: no repository is asked, and no other file read. Throws OpmateError
 * NOT_FOUND for charts that the archive does not hold.
 */
export async function openArchivedCharts(
  helm: HelmConfig,
  options: ArchivedChartsOptions,
): Promise<OpenedCharts> {
  const { charts: locked = [] } = options.lock;
  const wanted: { config: ChartConfig; locked: LockedChart; repository: string | undefined }[] = [];
  const faults: OpmateError[] = [];
  const want = (
    config: ChartConfig,
    chart: LockedChart | undefined,
    label: string,
    repository?: string,
  ): void => {
    if (chart !== undefined) wanted.push({ config, locked: chart, repository });
    else faults.push(new OpmateError('NOT_FOUND', `${label}: not in the archive`));
  };
  for (const config of helm.local)
    want(
      config,
      locked.find(({ source }) => source === config.path),
      `chart ${config.path}`,
    );
  for (const { name, url, charts, place } of helm.repositories) {
    const own = locked.filter(({ source }) => source === url);
    const every = own.map((chart) => ({
      config: { imagePaths: [], platforms: [], place },
      locked: chart,
      repository: name,
    }));
    if (charts === undefined) wanted.push(...every);
    for (const config of charts ?? []) {
      const label = `chart ${name}/${config.name}`;
      const versions = newestFirst(own.filter((chart) => chart.name === config.name));
      want(config, matchVersion(versions, config.version, label), label, name);
    }
  }
  if (faults.length > 0) throw combineErrors(faults);
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
  { lock, contentOf, signal }: ArchivedChartsOptions,
): Promise<OpenedChart> {
  const label = `chart ${repository === undefined ? locked.source : `${repository}/${locked.name}`} ${locked.version}`;
  const image = lock.images.find(
    (lockedImage) =>
      lockedImage.kind === 'chart' &&
      lockedImage.repository === locked.repository &&
      lockedImage.tag === locked.tag,
  );
  const layer = image?.contents.manifests[0]?.blobs[1];
  if (image === undefined || layer === undefined)
    throw new OpmateError('NOT_FOUND', `${label}: not in the archive`);
  const stream = await contentOf(image).openBlob(layer, { signal });
  const bytes = await readLimited(stream, maxChartBytes, label);
  const chart = await readPackedChart(bytes, label, { signal });
  const { name, version, metadata } = chart;
  const { digest, size } = layer;
  return {
    ...{ config, label, source: locked.source, repository },
    packed: { ...{ name, version, metadata, digest, size }, file: '' },
    found: await findChartImages(chart, label, { paths: config.imagePaths }),
  };
}
