//! How much of the wanted load is answered.

use super::World;

impl World {
    /// Answers what ranges and servers bear. The rest is refused, or lost if no server serves the range. Returns the
    /// places of the ranges that are warm.
    pub(super) fn admit(&mut self, step: f64) -> Vec<usize> {
        let limit = self.setting.range_limit;
        let mut wanted = vec![0.0; self.servers.len()];
        for flow in &self.flows {
            wanted[flow.server as usize] += flow.wanted.min(limit);
        }
        let levels = self.levels(&wanted);
        let (mut refused, mut lost, mut all) = (0.0, 0.0, 0.0);
        for server in &mut self.servers {
            server.load = 0.0;
        }
        let (mut warm, mark) = (Vec::new(), self.judge.mark());
        let kept = (-step / 10.0).exp2();
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let server = &mut self.servers[flow.server as usize];
            let serves = server.alive && f64::from(flow.opens) <= self.now;
            flow.answered = if serves { flow.wanted.min(levels[flow.server as usize]) } else { 0.0 };
            server.load += flow.answered;
            flow.measure(step, kept);
            if flow.answered >= mark || flow.watched {
                warm.push(index);
            }
            all += flow.wanted;
            *(if serves { &mut refused } else { &mut lost }) += flow.wanted - flow.answered;
        }
        self.trace.count(all * step, refused * step, lost * step);
        warm
    }

    /// For each server the rate above which it refuses a range's requests: so high that what is left
    /// is within its capacity. The hottest tenant is refused first, the quiet ones not at all.
    fn levels(&self, wanted: &[f64]) -> Vec<f64> {
        let (limit, capacity) = (self.setting.range_limit, self.setting.capacity);
        let mut levels = vec![limit; self.servers.len()];
        if wanted.iter().all(|wanted| *wanted <= capacity) {
            return levels;
        }
        let mut rates: Vec<Vec<f64>> = vec![Vec::new(); self.servers.len()];
        for flow in &self.flows {
            if wanted[flow.server as usize] > capacity {
                rates[flow.server as usize].push(flow.wanted.min(limit));
            }
        }
        for (rates, level) in rates.iter_mut().zip(&mut levels).filter(|(rates, _)| !rates.is_empty()) {
            rates.sort_by(f64::total_cmp);
            let mut left = capacity;
            for (index, rate) in rates.iter().enumerate() {
                let share = left / (rates.len() - index) as f64;
                if *rate > share {
                    *level = share;
                    break;
                }
                left -= rate;
            }
        }
        levels
    }
}
