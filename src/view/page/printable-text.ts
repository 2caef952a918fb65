import { options, type VNode } from 'preact';
import { printable } from '../../core/printable.js';

/** Attributes that are read out or shown. */
const shownAttributes = ['title', 'aria-label', 'alt', 'placeholder'];

/**
 * Makes every text that the page shows printable: text from catalogs could otherwise hide characters or change the
 * order in which others are read. Where a value is in the middle of a sentence, `<bdi>` and the style sheet isolate it.
 */
export function showPrintableText(): void {
  const next = options.vnode;
  options.vnode = (vnode) => {
    const props = vnode.props as Record<string, unknown>;
    const { children } = props;
    if (typeof children === 'string') props['children'] = printable(children);
    else if (Array.isArray(children) && children.some(isText)) {
      props['children'] = children.map((child: unknown) => (isText(child) ? printable(child) : child));
    }
    if (isElement(vnode)) {
      for (const name of shownAttributes) {
        const value = props[name];
        if (isText(value)) props[name] = printable(value);
      }
    }
    next?.(vnode);
  };
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isElement({ type }: VNode): boolean {
  return typeof type === 'string';
}
