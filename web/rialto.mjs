// rialto.js as a module: the same object that the script tag puts into window.rialto.
import './rialto.js';

export const { rialto, Rialto } = globalThis;
export default rialto;
