export { HeldSession } from './held-session.ts'
