export { type Asker, askThread, type Judgement, MAX_ANSWER_CHARS, siblingModule } from './judge-thread.ts'
