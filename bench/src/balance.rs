//! Which endpoint gets the next request.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::endpoints::RoundRobin;

/// The strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Strategy {
    /// In order, each as often.
    RoundRobin,
    /// In order, by weight.
    Weighted,
    /// Where the fewest requests are under way.
    LeastInFlight,
    /// Any.
    Random,
}

/// Picks endpoints.
#[derive(Debug)]
pub struct Balancer {
    strategy: Strategy,
    order: RoundRobin,
    in_flight: Vec<u64>,
    random: SmallRng,
}

impl Balancer {
    /// A balancer over endpoints of these weights.
    pub fn new(strategy: Strategy, weights: &[u32], seed: u64) -> Self {
        let order = match strategy {
            Strategy::Weighted => RoundRobin::new(weights.iter().copied()),
            _ => RoundRobin::new(weights.iter().map(|_| 1)),
        };
        Self {
            strategy,
            order,
            in_flight: vec![0; weights.len()],
            random: SmallRng::seed_from_u64(seed ^ 0xBA1A_4CE5),
        }
    }

    /// The next endpoint, by position. Give it back with [`Balancer::done`].
    pub fn next_endpoint(&mut self) -> usize {
        let endpoint = match self.strategy {
            Strategy::RoundRobin | Strategy::Weighted => self.order.next_endpoint(),
            Strategy::LeastInFlight => {
                (0..self.in_flight.len()).min_by_key(|&index| self.in_flight[index]).unwrap_or(0)
            }
            Strategy::Random => self.random.random_range(0..self.in_flight.len().max(1)),
        };
        self.in_flight[endpoint] += 1;
        endpoint
    }

    /// A request to `endpoint` has ended.
    pub fn done(&mut self, endpoint: usize) {
        self.in_flight[endpoint] = self.in_flight[endpoint].saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_busy_endpoint_is_next() {
        let mut balancer = Balancer::new(Strategy::LeastInFlight, &[1, 1, 1], 0);
        assert_eq!((0..3).map(|_| balancer.next_endpoint()).collect::<Vec<_>>(), [0, 1, 2]);
        balancer.done(1);
        assert_eq!(balancer.next_endpoint(), 1);
    }

    #[test]
    fn random_reaches_every_endpoint() {
        let mut balancer = Balancer::new(Strategy::Random, &[1, 1, 1], 5);
        let mut seen = [0; 3];
        (0..300).for_each(|_| seen[balancer.next_endpoint()] += 1);
        assert!(seen.iter().all(|count| *count > 60), "{seen:?}");
    }
}
