//! Operations that fail or stop where a test says.

use std::future::{Future, pending};
use std::sync::{Arc, Mutex};

use rangehold_shardmap::operation::{Moment, Step, StepFault, StepHook, When};
use tokio::sync::Notify;

/// What happens at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Fail(StepFault),
    /// The owner stands still there forever.
    Stop,
}

#[derive(Debug)]
struct Rule {
    step: Step,
    when: When,
    times: usize,
    fault: Fault,
}

/// The faults that are to come, and the moments that were.
#[derive(Clone, Default)]
pub struct Faults {
    rules: Arc<Mutex<Vec<Rule>>>,
    seen: Arc<Mutex<Vec<Moment>>>,
    stopped: Arc<Notify>,
}

impl Faults {
    pub fn hook(&self) -> StepHook {
        let faults = self.clone();
        StepHook::new(move |moment| faults.clone().at(moment))
    }

    async fn at(self, moment: Moment) -> Result<(), StepFault> {
        self.seen.lock().unwrap().push(moment);
        match self.next(moment) {
            None => Ok(()),
            Some(Fault::Fail(fault)) => Err(fault),
            Some(Fault::Stop) => {
                self.stopped.notify_one();
                pending().await
            }
        }
    }

    fn next(&self, moment: Moment) -> Option<Fault> {
        let mut rules = self.rules.lock().unwrap();
        let fits = |rule: &&mut Rule| rule.times > 0 && rule.step == moment.step && rule.when == moment.when;
        let rule = rules.iter_mut().find(fits)?;
        rule.times -= 1;
        Some(rule.fault)
    }

    /// Lets a step fail so often.
    pub fn fail(&self, step: Step, when: When, fault: StepFault, times: usize) {
        self.rules.lock().unwrap().push(Rule { step, when, times, fault: Fault::Fail(fault) });
    }

    /// Lets a step fail for good before its commit.
    pub fn break_step(&self, step: Step) {
        self.fail(step, When::Before, StepFault::Stays, usize::MAX);
    }

    pub fn stop(&self, step: Step, when: When) {
        self.rules.lock().unwrap().push(Rule { step, when, times: 1, fault: Fault::Stop });
    }

    pub fn clear(&self) {
        self.rules.lock().unwrap().clear();
        self.seen.lock().unwrap().clear();
    }

    pub fn seen(&self) -> Vec<Moment> {
        self.seen.lock().unwrap().clone()
    }

    /// Runs `work` until it ends, or until its owner stops, and is dead then: `None`.
    pub async fn until_death<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.stopped.notified() => None,
        }
    }
}
