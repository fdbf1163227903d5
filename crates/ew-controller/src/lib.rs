//! Launch, sync, arm, run, collect, repair: emits one stream of run events
