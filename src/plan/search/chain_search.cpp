#include "plan/search/chain_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace thimble {
namespace {

using Choices = std::vector<BlockChoice>;
constexpr double kNever = std::numeric_limits<double>::infinity();

class Frontier {
 public:
  Frontier(const std::vector<Block>& blocks,
           const std::vector<const std::vector<BlockOption>*>& options, const SearchLimits& limits)
      : blocks_(blocks),
        options_(options),
        limits_(limits),
        buckets_(static_cast<int>(blocks.size() > limits.long_chain ? limits.long_chain_buckets
                                                                    : limits.chain_buckets)),
        moves_(static_cast<size_t>(limits.chain_prices) + 1) {
    for (size_t b = 0; b < blocks.size(); ++b) {
      total_bytes_ += static_cast<double>(blocks[b].made.count);
      total_seconds_ += blocks[b].seconds;
      Bytes least = options[b]->front().alone_bytes;
      for (const BlockOption& option : *options[b]) least = std::min(least, option.alone_bytes);
      least_room_ = std::max(least_room_, static_cast<double>(least.count));
    }
    for (size_t b = 0; b < blocks.size(); ++b) {
      const auto [entry, fresh] = kinds_.try_emplace({options[b], leaving(b)}, kinds_.size());
      kind_of_.push_back(entry->second);
    }
  }

  // For several rooms of one segment and several prices of a kept byte, the cheapest choices; and
  // between neighbours in price, mixtures: the first blocks as one has them, the rest as the other.
  // Segments further on find more kept before them, so the room may shrink along the chain.
  std::vector<ChainPoint> run() {
    const double widest = std::max(total_bytes_, least_room_ * 2);
    const double ratio = std::pow(widest / least_room_, 1.0 / (limits_.chain_rooms - 1));
    for (int r = 0; r < limits_.chain_rooms_tried; ++r) {
      for (const double shrink : limits_.chain_shrinks) {
        add_prices(least_room_ * std::pow(ratio, r) * (1 + 1e-9), shrink);
      }
    }
    return pareto();
  }

 private:
  struct From {
    int16_t bucket = 0;
    int16_t option = 0;
    bool ends = false;
  };

  // The effect of an option on a segment, at one price of a kept byte.
  struct Move {
    int64_t needs = 0;    // room beside what was brought back before
    int64_t brought = 0;  // stays brought back for the blocks before
    double cost = 0;
    int16_t option = 0;
  };
  // Cheapest first; none that another beats in every respect.
  struct Moves {
    std::vector<Move> end_segment, go_on;
  };

  void add_prices(double room, double shrink) {
    call_watch(limits_);
    set_rooms(room, shrink);
    const int dearest = limits_.chain_prices;
    const Choices dear = solve(dearest);
    if (dear.empty()) return;
    const Choices cheap = solve(0);
    add(cheap);
    if (!same(cheap, dear)) add_between(cheap, 0, dear, dearest);
    add(dear);
  }

  // Between two prices that lead to different choices there may be others.
  void add_between(const Choices& below, int low, const Choices& above, int high) {
    if (high - low == 1) return add_mixtures(below, above);
    const int middle = (low + high) / 2;
    const Choices choices = solve(middle);
    if (!same(choices, below)) {
      add_between(below, low, choices, middle);
      add(choices);
    }
    if (!same(choices, above)) add_between(choices, middle, above, high);
  }

  double price_at(int notch) const {
    return total_seconds_ / total_bytes_ *
           std::pow(10.0, -3.0 + 5.0 * notch / limits_.chain_prices);
  }

  // By block: `room` at the first, (1 - shrink) of it at the last.
  void set_rooms(double room, double shrink) {
    rooms_.clear();
    double made = 0;
    for (const Block& block : blocks_) {
      rooms_.push_back(static_cast<int64_t>(room * (1 - shrink * made / total_bytes_)));
      made += static_cast<double>(block.made.count);
    }
    buckets_per_byte_ = 1 / static_cast<double>(rooms_[0] + 1);
  }

  const BlockOption& option(size_t b, int o) const {
    return (*options_[b])[static_cast<size_t>(o)];
  }
  int64_t leaving(size_t b) const {
    return b + 1 < blocks_.size() ? blocks_[b + 1].entering.count : 0;
  }

  // brought * (buckets - 1) / (the first room + 1), without the division: the guess is off by one
  // at most.
  size_t bucket_of(int64_t brought) const {
    const int64_t taken = brought * (buckets_ - 1), each = rooms_[0] + 1;
    auto bucket = static_cast<int64_t>(static_cast<double>(taken) * buckets_per_byte_);
    if (bucket * each > taken) --bucket;
    if ((bucket + 1) * each <= taken) ++bucket;
    return static_cast<size_t>(bucket);
  }

  static bool same(const Choices& a, const Choices& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](auto x, auto y) {
             return x.option == y.option && x.ends_segment == y.ends_segment;
           });
  }

  static std::vector<Move> best_of(std::vector<Move> moves) {
    std::stable_sort(moves.begin(), moves.end(),
                     [](const Move& a, const Move& b) { return a.cost < b.cost; });
    std::vector<Move> best;
    for (const Move& move : moves) {
      const bool beaten = std::any_of(best.begin(), best.end(), [&](const Move& cheaper) {
        return cheaper.needs <= move.needs && cheaper.brought <= move.brought;
      });
      if (!beaten) best.push_back(move);
    }
    return best;
  }

  // By kind of block. They depend on the price alone, which returns for every room.
  const std::vector<Moves>& moves_at(int notch) {
    std::vector<Moves>& kinds = moves_[static_cast<size_t>(notch)];
    if (!kinds.empty()) return kinds;
    kinds.resize(kinds_.size());
    const double price = price_at(notch);
    for (const auto& [kind, index] : kinds_) {
      const auto& [options, leaves] = kind;
      std::vector<Move> end_segment, go_on;
      for (size_t o = 0; o < options->size(); ++o) {
        const BlockOption& option = (*options)[o];
        const double kept = price * static_cast<double>(option.kept_bytes.count);
        const auto name = static_cast<int16_t>(o);
        end_segment.push_back({option.alone_bytes.count, 0,
                               option.alone_seconds + kept + price * static_cast<double>(leaves),
                               name});
        const int64_t replay = option.replay_bytes.count;
        go_on.push_back({replay + std::max(option.after_replay_bytes.count, leaves),
                         replay + leaves,
                         option.replay_seconds + option.after_replay_seconds + kept, name});
      }
      kinds[index] = {best_of(std::move(end_segment)), best_of(std::move(go_on))};
    }
    return kinds;
  }

  // Least time plus price times kept bytes, with at most rooms_ brought back in any segment. States
  // are told apart by what the open segment brings back, in buckets, exact inside.
  Choices solve(int notch) {
    struct State {
      double cost = kNever;
      int64_t brought = 0;
    };
    const std::vector<Moves>& kinds = moves_at(notch);
    std::vector<State> states(static_cast<size_t>(buckets_)), next(static_cast<size_t>(buckets_));
    from_.resize(blocks_.size() * static_cast<size_t>(buckets_));
    states[0].cost = 0;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      std::fill(next.begin(), next.end(), State{});
      const bool last = b + 1 == blocks_.size();
      const Moves& moves = kinds[kind_of_[b]];
      double least = kNever;  // of the states so far, which bring back less
      for (int k = 0; k < buckets_; ++k) {
        const State state = states[static_cast<size_t>(k)];
        if (state.cost >= least) continue;
        least = state.cost;
        const int64_t room = rooms_[b] - state.brought;
        const auto offer = [&](size_t bucket, double cost, int64_t brought, From from) {
          State& held = next[bucket];
          if (cost >= held.cost) return;
          held = {cost, brought};
          from_[b * static_cast<size_t>(buckets_) + bucket] = from;
        };
        for (const Move& move : moves.end_segment) {
          if (move.needs > room) continue;
          offer(0, state.cost + move.cost, 0, {static_cast<int16_t>(k), move.option, true});
          break;
        }
        if (last) continue;
        for (const Move& move : moves.go_on) {
          if (move.needs > room) continue;
          const int64_t brought = state.brought + move.brought;
          offer(bucket_of(brought), state.cost + move.cost, brought,
                {static_cast<int16_t>(k), move.option, false});
        }
      }
      std::swap(states, next);
    }
    if (states[0].cost == kNever) return {};  // the last segment has to end
    Choices choices(blocks_.size());
    int k = 0;
    for (size_t b = blocks_.size(); b-- > 0;) {
      const From& call = from_[b * static_cast<size_t>(buckets_) + static_cast<size_t>(k)];
      choices[b] = {call.option, call.ends};
      k = call.bucket;
    }
    return choices;
  }

  void add_mixtures(const Choices& first, const Choices& second) {
    for (int i = 1; i < limits_.chain_mixtures; ++i) {
      const size_t at =
          blocks_.size() * static_cast<size_t>(i) / static_cast<size_t>(limits_.chain_mixtures);
      if (at == 0) continue;
      Choices mixed = second;
      std::copy_n(first.begin(), at, mixed.begin());
      mixed[at - 1].ends_segment = true;
      add(mixed);
    }
  }

  void add(const Choices& choices) {
    ChainPoint point;
    int64_t kept = 0;
    int64_t brought = 0;
    int64_t peak = 0;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const BlockOption& o = option(b, choices[b].option);
      kept += o.kept_bytes.count;
      if (choices[b].ends_segment) {
        peak = std::max(peak, kept + brought + o.alone_bytes.count);
        point.seconds += o.alone_seconds;
        kept += leaving(b);
        brought = 0;
      } else {
        brought += o.replay_bytes.count;
        peak = std::max(peak, kept + brought + o.after_replay_bytes.count);
        point.seconds += o.replay_seconds + o.after_replay_seconds;
        brought += leaving(b);
      }
    }
    point.peak = Bytes(peak);
    point.choices = choices;
    points_.push_back(std::move(point));
  }

  std::vector<ChainPoint> pareto() {
    std::stable_sort(points_.begin(), points_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.peak, a.seconds) < std::pair(b.peak, b.seconds);
    });
    std::vector<ChainPoint> best;  // from least memory to most
    for (ChainPoint& point : points_) {
      if (best.empty() || point.seconds < best.back().seconds) best.push_back(std::move(point));
    }
    std::reverse(best.begin(), best.end());
    return best;
  }

  const std::vector<Block>& blocks_;
  const std::vector<const std::vector<BlockOption>*>& options_;
  const SearchLimits& limits_;
  double total_bytes_ = 0;
  double total_seconds_ = 0;
  double least_room_ = 1;
  const int buckets_;                                                // states of solve() at a block
  using Kind = std::pair<const std::vector<BlockOption>*, int64_t>;  // options, what leaves
  std::map<Kind, size_t> kinds_;
  std::vector<size_t> kind_of_;            // by block
  std::vector<std::vector<Moves>> moves_;  // by price and kind, when asked for
  std::vector<int64_t> rooms_;
  double buckets_per_byte_ = 0;  // over buckets_ - 1
  std::vector<From> from_;       // by block and bucket: how solve() got there
  std::vector<ChainPoint> points_;
};

}  // namespace

std::vector<ChainPoint> chain_frontier(const std::vector<Block>& blocks,
                                       const std::vector<const std::vector<BlockOption>*>& options,
                                       const SearchLimits& limits) {
  return Frontier(blocks, options, limits).run();
}

}  // namespace thimble
