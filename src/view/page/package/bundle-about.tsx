import type { ComponentChildren } from 'preact';
import type { BundleDetails } from '../../responses.js';
import { toWebUrl } from '../markdown.js';
import { Markdown } from '../markdown-view.js';
import { Part } from '../parts.js';

/** Links, description, annotations, manifests and properties of a bundle. */
export function About({ bundle }: { bundle: BundleDetails }) {
  const { facts, links, keywords, description, annotations, properties, manifests } = bundle;
  return (
    <>
      {facts.length + links.length + keywords.length > 0 && (
        <Part title="About">
          <dl>
            {facts.map(({ name, value }) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>
                  <WebLink url={value}>{value}</WebLink>
                </dd>
              </div>
            ))}
            {links.length > 0 && (
              <div>
                <dt>Links</dt>
                <dd>
                  <ul class="names">
                    {links.map(({ name, url }, index) => (
                      <li key={index}>
                        <WebLink url={url}>{name || url}</WebLink>
                      </li>
                    ))}
                  </ul>
                </dd>
              </div>
            )}
            {keywords.length > 0 && (
              <div>
                <dt>Keywords</dt>
                <dd>{keywords.join(', ')}</dd>
              </div>
            )}
          </dl>
        </Part>
      )}
      {description !== '' && (
        <details class="fold">
          <summary>Description</summary>
          <Markdown text={description} />
        </details>
      )}
      {annotations.length > 0 && (
        <details class="fold">
          <summary>
            Annotations <small>{annotations.length}</small>
          </summary>
          <dl class="wide">
            {annotations.map(({ name, value }) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
      <Counts title="Manifests in the catalog" counts={manifests.map(({ kind, count: n }) => [kind, n])} />
      <Counts title="Properties" counts={properties.map(({ type, count: n }) => [type, n])} />
    </>
  );
}

function Counts({ title, counts }: { title: string; counts: [string, number][] }) {
  if (counts.length === 0) return null;
  return (
    <details class="fold">
      <summary>
        {title} <small>{counts.reduce((sum, [, amount]) => sum + amount, 0)}</small>
      </summary>
      <ul class="apis">
        {counts.map(([name, amount]) => (
          <li key={name}>
            {name} <small>{amount}</small>
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Link for an http or https URL; otherwise plain text. */
function WebLink({ url, children }: { url: string; children: ComponentChildren }) {
  const address = toWebUrl(url);
  if (address === undefined) return <>{children}</>;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}
