/** Drawings of upgrade graphs: as Mermaid text, as SVG, and by channel. */
export { readGraph } from '../../graph/channel-graph.js';
export { drawGraph, drawingLimits } from '../../graph/mermaid.js';
export { drawSvg, readDrawnChannels } from '../../view/graph-svg.js';
