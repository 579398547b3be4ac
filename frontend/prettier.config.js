// Line breaks may come into elements that CSS makes blocks; text with `white-space: pre-wrap` is written as <pre>.
export default { printWidth: 120 };
