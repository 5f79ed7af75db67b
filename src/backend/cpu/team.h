// The threads that kernels share. oneDNN splits work among as many as OpenMP promises, and a part
// that belongs to a thread which never comes is not done, or waited for without end. So a team is
// counted before any kernel is made for it, and its size is what every kernel goes by.
#pragma once

namespace thimble {

class Team {
 public:
  // asked: 0 means OMP_NUM_THREADS, else one per usable core, lowered (and said, on stderr) to what
  // can be had. Throws UserError where more are asked for than OpenMP or the system gives.
  explicit Team(int asked);

  int size() const { return size_; }
  // Makes it the team of what the calling thread runs: OpenMP keeps its settings per thread, and
  // another backend may have set them.
  void enter() const;

 private:
  int size_;
};

}  // namespace thimble
