// rialto.js for those who import: the same object that the script tag leaves in window.rialto.
import './rialto.js';

export const { rialto, Rialto } = globalThis;
export default rialto;
