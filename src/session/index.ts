export { HeldSession } from './held-session.ts'
export { addHidden } from './hidden-values.ts'
