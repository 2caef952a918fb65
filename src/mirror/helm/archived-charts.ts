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
    found: LockedChart | undefined,
    label: string,
    repository?: string,
  ): void => {
    if (found !== undefined) wanted.push({ config, locked: found, repository });
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
    const every = own.map((one) => ({
      config: { imagePaths: [], platforms: [], place },
      locked: one,
      repository: name,
    }));
    if (charts === undefined) wanted.push(...every);
    for (const config of charts ?? []) {
      const label = `chart ${name}/${config.name}`;
      const versions = newestFirst(own.filter((one) => one.name === config.name));
      want(config, matchVersion(versions, config.version, label), label, name);
    }
  }
  if (faults.length > 0) throw combineErrors(faults);
  const charts: OpenedChart[] = [];
  for (const one of wanted) charts.push(await openArchived(one, options));
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
    (one) => one.kind === 'chart' && one.repository === locked.repository && one.tag === locked.tag,
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
    found: findChartImages(chart, label, { paths: config.imagePaths }),
  };
}
