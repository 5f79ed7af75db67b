// Ranks as threads of one process, for tests that need no MPI.
#pragma once

#include <barrier>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "comm/communicator.h"

namespace thimble {

class SimulatedRanks {
 public:
  explicit SimulatedRanks(int size) : size_(size), meeting_(size), shown_(size) {}

  // Calls body(rank's communicator) in a thread for every rank; rethrows what one of them throws. A rank
  // that throws must not leave others waiting: all of them have to throw.
  void run(const std::function<void(Communicator& ranks)>& body) {
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> faults(static_cast<size_t>(size_));
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        Rank own(*this, rank);
        try {
          body(own);
        } catch (...) {
          faults[static_cast<size_t>(rank)] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& fault : faults) {
      if (fault) std::rethrow_exception(fault);
    }
  }

 private:
  class Rank final : public Communicator {
   public:
    Rank(SimulatedRanks& all, int rank) : all_(all), rank_(rank) {}

    std::string_view name() const override { return "simulated"; }
    int rank() const override { return rank_; }
    int size() const override { return all_.size_; }

    void exchange(const Pieces& out, const Pieces& in) override {
      meet(out, [&](int k, const Pieces& theirs) { copy(theirs.of(rank_), in.of(k)); });
    }
    void all_gather(const Pieces& all) override {
      meet(all, [&](int k, const Pieces& theirs) { copy(theirs.of(k), all.of(k)); });
    }
    void broadcast(std::span<std::byte> bytes, int root) override {
      const Pieces whole = {bytes.data(), 0, std::ssize(bytes)};
      meet(whole, [&](int k, const Pieces& theirs) {
        if (k == root) copy(theirs.of(0), bytes);
      });
    }

   private:
    // Shows the others what this rank has, and takes what it wants of theirs while they wait.
    template <class Take>
    void meet(const Pieces& own, const Take& take) {
      all_.shown_[static_cast<size_t>(rank_)] = own;
      all_.meeting_.arrive_and_wait();
      for (int k = 0; k < all_.size_; ++k) {
        if (k != rank_) take(k, all_.shown_[static_cast<size_t>(k)]);
      }
      all_.meeting_.arrive_and_wait();
    }
    static void copy(std::span<const std::byte> from, std::span<std::byte> to) {
      std::copy_n(from.data(), std::min(from.size(), to.size()), to.data());
    }

    SimulatedRanks& all_;
    const int rank_;
  };

  const int size_;
  std::barrier<> meeting_;
  std::vector<Pieces> shown_;  // by rank
};

}  // namespace thimble
