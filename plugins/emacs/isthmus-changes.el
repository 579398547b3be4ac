;;; isthmus-changes.el --- Keep or undo what agents wrote without a review  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience, processes

;;; Commentary:

;; M-x isthmus-changes lists what agents wrote, by turn and file, the newest turn first.  RET shows the hunks of a file.
;; In both: a keeps, x undoes, and u takes an undo back, of the hunk, file or turn at point.  isthmus.el loads this file
;; with the first of these commands, counts the files in the mode line, and says once that something was written.
;;
;; The companion records and writes; docs/reference/written-changes.md describes the requests.  What is decided names
;; the hunks by their content, or the state that was on the screen: what came later is never decided unseen.

;;; Code:

(require 'isthmus)
(require 'diff-mode)

(declare-function evil-define-key* "ext:evil-core")
(declare-function evil-set-initial-state "ext:evil-core")
(declare-function evil-add-command-properties "ext:evil-common")
(declare-function smerge-refine-regions "smerge-mode")
(declare-function ediff-buffers "ediff")

(defconst isthmus-changes--context 3 "Unchanged lines that are shown around a hunk.")
(defconst isthmus-changes--look 0.2 "Seconds between two looks whether the user has paused.")

(defvar isthmus-changes--deciding nil "The companion that carries out a decision; nil: none is under way.")
(defvar isthmus-changes--refresh-timer nil "Shows what is new when the user pauses.")
(defvar isthmus-changes--same nil "Numbers of hunks with the same lines, by these lines, while hunks are drawn.")
(defvar-local isthmus-changes--answer nil "The companion's answer that is on the screen.")
(defvar-local isthmus-changes--changed-at nil "When agents changed what is on the screen, as `float-time'.")
(defvar-local isthmus-changes--path nil "The file whose hunks are shown; nil in the list.")
(defvar-local isthmus-changes--turn nil "The turn whose hunks are shown; nil: all turns.")
(defvar-local isthmus-changes--line nil "Where in the file the user came from, a line counted from 0.")

;;;; Modes

(defvar isthmus-changes-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command)
                   '(("RET" . isthmus-changes-show) ("<mouse-2>" . isthmus-changes-click) ("o" . isthmus-changes-visit)
                     ("a" . isthmus-changes-keep) ("x" . isthmus-changes-undo) ("u" . isthmus-changes-redo)
                     ("A" . isthmus-changes-keep-turn)
                     ("n" . isthmus-changes-next) ("p" . isthmus-changes-previous)
                     ("J" . isthmus-changes-next-turn) ("K" . isthmus-changes-previous-turn)))
      (define-key map (kbd key) command))
    (define-key map [follow-link] 'mouse-face)
    map)
  "Keys in the list of what agents wrote.")

(define-derived-mode isthmus-changes-mode special-mode "Changes"
  "What agents wrote without a review, by turn and file, the newest turn first.
\\<isthmus-changes-mode-map>\\[isthmus-changes-show] shows the hunks of a file.
\\[isthmus-changes-keep] keeps, \\[isthmus-changes-undo] undoes, and \\[isthmus-changes-redo] takes an undo back."
  (setq-local truncate-lines t
              buffer-undo-list t
              revert-buffer-function (lambda (&rest _) (isthmus-changes--refresh (current-buffer))))
  (isthmus-changes--set-header "Asking the companion..."))

(defvar isthmus-changes-diff-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "e") #'isthmus-changes-ediff)
    (define-key map (kbd "C-c C-e") #'isthmus-changes-ediff)
    map)
  "Keys in the hunks of a file that agents wrote.")

(define-derived-mode isthmus-changes-diff-mode isthmus-changes-mode "Changes"
  "The hunks of a file that agents wrote without a review.
\\<isthmus-changes-diff-mode-map>\\[isthmus-changes-show] shows the place in the file.
The hunk at point, those in the region, or above the first one the file:
\\[isthmus-changes-keep] keeps, \\[isthmus-changes-undo] undoes, and \\[isthmus-changes-redo] takes an undo back."
  (setq-local truncate-lines nil))

(defun isthmus-changes--set-header (text)
  "Show TEXT and the keys above this buffer."
  (setq header-line-format
        (string-replace "%" "%%" (concat " " (isthmus--visible text) "   RET "
                                         (if isthmus-changes--path "file" "hunks") "  a keep  x undo  u take back"))))

;;;; Showing

(defun isthmus-changes--require-companion ()
  "Signal `user-error' without a companion."
  (unless isthmus--greeted
    (user-error "Isthmus: no companion runs; M-x isthmus-start")))

(defun isthmus-changes ()
  "List what agents wrote without a review, the newest turn first."
  (interactive)
  (isthmus-changes--require-companion)
  (isthmus-changes--pop (get-buffer-create "*isthmus changes*") #'isthmus-changes-mode))

(defun isthmus-changes-file ()
  "Show all that agents wrote in the file of this buffer."
  (interactive)
  (isthmus-changes--require-companion)
  (let ((buffer (or (buffer-base-buffer) (current-buffer))))
    (isthmus-changes--show-file (or (isthmus--file-of buffer) (user-error "Isthmus: this buffer is no file on disk"))
                                nil (1- (line-number-at-pos nil t)))))

(defun isthmus-changes--show-file (path turn &optional line)
  "Show the hunks of TURN in the file PATH, those of all if TURN is nil.
Put point on the one nearest to LINE of the file."
  (let ((name (format "*written: %s*" (isthmus-changes--printed (file-name-nondirectory path)))))
    (isthmus-changes--pop
     (or (seq-find (lambda (buffer)
                     (and (equal (buffer-local-value 'isthmus-changes--path buffer) path)
                          (equal (buffer-local-value 'isthmus-changes--turn buffer) turn)))
                   (buffer-list))
         (generate-new-buffer name))
     #'isthmus-changes-diff-mode
     (lambda ()
       (setq isthmus-changes--path path
             isthmus-changes--turn turn
             isthmus-changes--line line)
       (when (or line (= (point-min) (point-max))) ; then point goes to a hunk
         (let ((inhibit-read-only t))
           (erase-buffer))
         (isthmus-changes--set-header "Asking the companion..."))))))

(defun isthmus-changes--pop (buffer mode &optional prepare)
  "Show BUFFER, in MODE, and ask the companion for what belongs into it.
Set it up by PREPARE."
  (with-current-buffer buffer
    (unless (derived-mode-p mode)
      (funcall mode)
      (setq default-directory (file-name-as-directory (or (car isthmus--folders) "/"))))
    (when prepare
      (funcall prepare))
    (isthmus-changes--refresh buffer))
  (pop-to-buffer buffer))

(defun isthmus-changes--views ()
  "Return the buffers that show what agents wrote."
  (seq-filter (lambda (buffer)
                (with-current-buffer buffer
                  (derived-mode-p 'isthmus-changes-mode)))
              (buffer-list)))

(defun isthmus-changes--refresh (buffer &optional gone by-agents)
  "Show in BUFFER what is there now.
GONE replaces the item at point, if it is not there any more.  BY-AGENTS
is non-nil if not the user's keys are the reason."
  (when isthmus--greeted
    (with-current-buffer buffer
      (isthmus--ask-changes
       (if isthmus-changes--path "written_file" "written")
       (when isthmus-changes--path
         `((path . ,isthmus-changes--path)
           ,@(when isthmus-changes--turn `((turn . ,isthmus-changes--turn)))))
       (lambda (answer problem)
         (when (buffer-live-p buffer)
           (with-current-buffer buffer
             (when (and by-agents (not (equal (isthmus-changes--content answer)
                                              (isthmus-changes--content isthmus-changes--answer))))
               (setq isthmus-changes--changed-at (float-time)))
             (setq isthmus-changes--answer answer)
             (isthmus-changes--draw gone (lambda ()
                                           (cond (problem (isthmus-changes--draw-problem problem))
                                                 (isthmus-changes--path (isthmus-changes--draw-file answer))
                                                 (t (isthmus-changes--draw-list answer))))))))))))

(defun isthmus-changes--content (answer)
  "Return the part of ANSWER that is on the screen."
  (list (plist-get answer :turns) (plist-get answer :hunks)))

(defun isthmus-changes--refresh-later ()
  "Show what is new as soon as the user pauses, so that no key meets it."
  (unless isthmus-changes--refresh-timer
    (setq isthmus-changes--refresh-timer (run-at-time isthmus-changes--look nil #'isthmus-changes--look))))

(defun isthmus-changes--look ()
  "Show what is new, unless the user is typing."
  (setq isthmus-changes--refresh-timer nil)
  (let ((shown (seq-filter (lambda (buffer) (get-buffer-window buffer t)) (isthmus-changes--views))))
    (cond
     ((null shown))
     ;; During a decision its answer draws the lists, with a line for what is gone.
     ((and (isthmus--may-show) (not (isthmus-changes--is-deciding)))
      (dolist (buffer shown)
        (isthmus-changes--refresh buffer nil t)))
     (t (isthmus-changes--refresh-later)))))

(add-hook 'isthmus-changes-changed-functions #'isthmus-changes--refresh-later)

;; Items: each line of a view has one in the property `isthmus-change', a plist with :key, which stays with it.

(defun isthmus-changes--item (&optional place)
  "Return what the line at PLACE is about, or nil."
  (get-text-property (save-excursion (goto-char (or place (point))) (line-beginning-position)) 'isthmus-change))

(defun isthmus-changes--place (key)
  "Return where the item with KEY begins, or nil."
  (let ((place (point-min)) found)
    (while (and place (not found))
      (if (equal (plist-get (get-text-property place 'isthmus-change) :key) key)
          (setq found place)
        (setq place (next-single-property-change place 'isthmus-change))))
    found))

(defun isthmus-changes--insert (item &rest texts)
  "Insert TEXTS, whole lines, about ITEM."
  (let ((start (point)))
    (apply #'insert texts)
    (put-text-property start (point) 'isthmus-change item)
    (when (memq (plist-get item :kind) '(file undo))
      (put-text-property start (1- (point)) 'mouse-face 'highlight))))

(defun isthmus-changes--draw (gone function)
  "Write this buffer anew by FUNCTION; point stays at its item in all windows.
If the item at point is gone, the line GONE is in its place.
A line of this kind stays until point leaves it: what is decided next is
then never the item that moved up to point."
  (let* ((gone (or gone (and (eq (plist-get (isthmus-changes--item) :kind) 'gone)
                             (plist-get (isthmus-changes--item) :said))))
         (place-of (lambda (place)
                     (let ((key (plist-get (isthmus-changes--item place) :key)))
                       (list key (line-number-at-pos place)
                             (if key (- (line-number-at-pos place) (line-number-at-pos (isthmus-changes--place key)))
                               0)))))
         (point-place (funcall place-of (point)))
         (places (mapcar (lambda (window)
                           (list window (funcall place-of (window-point window))
                                 (line-number-at-pos (window-start window))))
                         (get-buffer-window-list nil t t)))
         (is-first (= (point-min) (point-max)))
         (inhibit-read-only t)
         (restore (pcase-lambda (`(,key ,line ,offset))
                    (let ((place (and key (isthmus-changes--place key))))
                      (goto-char (or place (point-min)))
                      (forward-line (if place offset (1- line)))
                      (when (and place (not (equal key (plist-get (isthmus-changes--item) :key))))
                        (goto-char place))
                      (point)))))
    (remove-overlays)
    (erase-buffer)
    (funcall function)
    (isthmus--show-reordering)
    (when (and gone (car point-place) (not (isthmus-changes--place (car point-place))))
      (goto-char (point-min))
      (forward-line (- (nth 1 point-place) (nth 2 point-place) 1))
      (when-let ((key (plist-get (isthmus-changes--item) :key)))
        (goto-char (isthmus-changes--place key))) ; not within another hunk
      (isthmus-changes--insert `(:kind gone :key ,(car point-place) :said ,gone)
                               (propertize (concat "  " gone "\n") 'face 'shadow)))
    (set-buffer-modified-p nil)
    (if is-first
        (isthmus-changes--go-to-first)
      (funcall restore point-place)
      (when (and (eobp) (not (bobp)))
        (forward-line -1)))
    (let ((here (point)))
      (pcase-dolist (`(,window ,place ,start) places)
        (set-window-point window (if is-first here (funcall restore place)))
        (set-window-start window (progn (goto-char (point-min)) (forward-line (1- start)) (point)) t))
      (goto-char here))))

(defun isthmus-changes--go-to-first ()
  "Put point on the first item, or on the hunk where the user came from."
  (goto-char (point-min))
  (let ((hunks (seq-filter (lambda (item) (eq (plist-get item :kind) 'hunk)) (isthmus-changes--items))))
    (if (and isthmus-changes--path hunks)
        (let ((line (or isthmus-changes--line 0)))
          (goto-char (isthmus-changes--place
                      (plist-get (car (sort hunks (lambda (one other)
                                                    (< (abs (- (plist-get one :line) line))
                                                       (abs (- (plist-get other :line) line))))))
                                 :key))))
      (while (and (not (isthmus-changes--item)) (zerop (forward-line)))))))

(defun isthmus-changes--items (&optional start end)
  "Return the items from START to END, or of the whole buffer."
  (let ((place (or start (point-min)))
        (end (or end (point-max)))
        items)
    (while (and place (< place end))
      (when-let ((item (get-text-property place 'isthmus-change)))
        (push item items))
      (setq place (next-single-property-change place 'isthmus-change)))
    (delete-dups (nreverse items))))

(defun isthmus-changes--draw-problem (problem)
  "Show the text PROBLEM and nothing else."
  (isthmus-changes--set-header "Nothing to show")
  (insert problem "\n"))

;; The list

(defun isthmus-changes--printed (text)
  "Return TEXT on one line, without control characters."
  (isthmus--visible (replace-regexp-in-string "[[:cntrl:]]+" " " text)))

(defun isthmus-changes--name (path)
  "Return PATH as the user knows it: in a workspace folder, or from home."
  (let ((folder (seq-find (lambda (folder) (string-prefix-p (file-name-as-directory folder) path)) isthmus--folders)))
    (isthmus-changes--printed (if folder (file-relative-name path folder) (abbreviate-file-name path)))))

(defun isthmus-changes--time (time)
  "Return TIME, in seconds since 1970, for the user."
  (format-time-string (if (equal (format-time-string "%F" time) (format-time-string "%F")) "%H:%M" "%F %H:%M") time))

(defun isthmus-changes--lines (item)
  "Return the numbers of added and removed lines of ITEM, a turn or a file."
  (let ((added (plist-get item :added))
        (removed (plist-get item :removed)))
    (string-join (delq nil (list (when (> added 0) (propertize (format "+%d" added) 'face 'diff-indicator-added))
                                 (when (> removed 0)
                                   (propertize (format "-%d" removed) 'face 'diff-indicator-removed))))
                 " ")))

(defun isthmus-changes--draw-list (listing)
  "Show LISTING, an answer to the request `written'."
  (let ((turns (sort (copy-sequence (plist-get listing :turns))
                     (lambda (one other) (> (plist-get one :number) (plist-get other :number)))))
        (files (seq-count (lambda (file) (> (plist-get file :written) 0)) (plist-get listing :files)))
        (since (plist-get listing :since)))
    (isthmus-changes--set-header
     (format "%s%s" (if turns (format "%d file%s written" files (if (= files 1) "" "s")) "Nothing was written")
             (if (> since 0) (concat " since " (isthmus-changes--time since)) "")))
    (dolist (note (list (plist-get listing :problem)
                        (and (plist-get listing :partial) "The workspace has more files than are followed.")
                        (and (not (plist-get listing :following)) "No agent is attached: nothing is recorded now.")))
      (unless (string-empty-p (or note ""))
        (insert (propertize (concat (isthmus-changes--printed note) "\n\n") 'face 'shadow))))
    (mapc #'isthmus-changes--draw-turn turns)
    (when (plist-get listing :undos)
      (insert "Undone; u takes back\n")
      (dolist (undo (reverse (plist-get listing :undos)))
        (isthmus-changes--insert
         `(:kind undo :key (undo ,(plist-get undo :number)) :undo ,(plist-get undo :number))
         (format "  %s  %s\n" (isthmus-changes--time (plist-get undo :at))
                 (mapconcat #'isthmus-changes--name (plist-get undo :files) ", ")))))))

(defun isthmus-changes--draw-turn (turn)
  "Show TURN with its files."
  (let* ((number (plist-get turn :number))
         (files (plist-get turn :files))
         (title (isthmus-changes--printed (plist-get turn :title)))
         (agents (isthmus-changes--printed (string-join (plist-get turn :agents) ", ")))
         (from (isthmus-changes--time (plist-get turn :began_at)))
         (to (isthmus-changes--time (plist-get turn :last_at))))
    (isthmus-changes--insert
     `(:kind turn :key (turn ,number) :turn ,number :files ,files)
     (isthmus-changes--joined
      (propertize (isthmus-changes--joined (format "Turn %d" number)
                                           (if (equal from to) from (concat from "-" to))
                                           agents)
                  'face 'bold)
      (if (plist-get turn :working) "may go on" "") (isthmus-changes--lines turn))
     "\n"
     (if (string-empty-p title) "" (propertize (format "  %s\n" (truncate-string-to-width title 100 nil nil t))
                                               'face 'italic)))
    (dolist (file files)
      (let ((path (plist-get file :path))
            (former (plist-get file :renamed_from)))
        (isthmus-changes--insert
         `(:kind file :key (file ,number ,path) :turn ,number :path ,path :files (,file)
                 :written ,(plist-get file :written) :undone ,(plist-get file :undone))
         (format "  %-8s " (if former "renamed" (plist-get file :kind)))
         (if former (concat (isthmus-changes--name former) " to ") "")
         (isthmus-changes--joined (isthmus-changes--name path) (isthmus-changes--lines file)
                                  (isthmus-changes--state-of file))
         "\n")))
    (insert "\n")))

(defun isthmus-changes--joined (&rest texts)
  "Return TEXTS side by side, without the empty ones."
  (string-join (seq-remove #'string-empty-p texts) "  "))

(defun isthmus-changes--state-of (file)
  "Return how much of FILE is undone, or why it cannot be."
  (let ((why (plist-get file :why)))
    (cond
     ((> (plist-get file :undone) 0)
      (propertize (if (zerop (plist-get file :written)) "undone" (format "%d undone" (plist-get file :undone)))
                  'face 'shadow))
     ((not (string-empty-p why))
      (propertize (concat "cannot be undone: " (isthmus-changes--printed why)) 'face 'shadow))
     (t ""))))

;; The hunks of a file

(defun isthmus-changes--draw-file (file)
  "Show the hunks of FILE, an answer to the request `written_file'."
  (require 'smerge-mode)
  (let* ((path (plist-get file :path))
         (texts (mapcar (lambda (side) (isthmus--split-text (or (plist-get file side) ""))) '(:old :new)))
         (is-dos (seq-every-p (pcase-lambda (`(,text ,coding ,_)) (or (string-empty-p text) (eq coding 'utf-8-dos)))
                              texts))
         (old (vconcat (isthmus-changes--split (or (plist-get file :old) ""))))
         (hunks (plist-get file :hunks))
         (isthmus-changes--same (make-hash-table :test #'equal))
         (after 0)
         (refined 0))
    (isthmus-changes--set-header
     (concat (isthmus-changes--name path)
             (if isthmus-changes--turn (format ", turn %d" isthmus-changes--turn) ", all turns")))
    (isthmus-changes--insert
     `(:kind file :key file :path ,path :turn ,isthmus-changes--turn :files (,file)
             :written ,(plist-get file :written) :undone ,(plist-get file :undone))
     (isthmus-changes--joined
      (propertize (format "%s  %s" (plist-get file :kind) (isthmus-changes--name path)) 'face 'bold)
      (isthmus-changes--lines file) (isthmus-changes--state-of file))
     "\n")
    (while hunks
      (let* ((hunk (pop hunks))
             (start (plist-get hunk :old_start))
             (end (let ((end (+ start (length (plist-get hunk :old_lines)))))
                    (if (or (equal (plist-get hunk :state) "written")
                            (equal (plist-get hunk :old_lines)
                                   (append (seq-subseq old (min start (length old)) (min end (length old))) nil)))
                        end
                      start)))
             (next (if hunks (plist-get (car hunks) :old_start) (length old)))
             (before (max after (- start isthmus-changes--context)))
             (last (max end (min next (length old) (+ end isthmus-changes--context)))))
        (setq after last)
        (when (isthmus-changes--draw-hunk hunk file (seq-subseq old (min before start (length old))
                                                                (min start (length old)))
                                          (seq-subseq old (min end (length old)) (min last (length old)))
                                          is-dos (< refined isthmus--most-refined))
          (cl-incf refined))))))

(defun isthmus-changes--split (text)
  "Return the lines of TEXT with their newlines."
  (let ((place 0) lines)
    (while (< place (length text))
      (let ((end (if-let ((found (string-search "\n" text place))) (1+ found) (length text))))
        (push (substring text place end) lines)
        (setq place end)))
    (nreverse lines)))

(defun isthmus-changes--draw-hunk (hunk file before after is-dos may-refine)
  "Show HUNK of FILE between the unchanged lines BEFORE and AFTER.
IS-DOS: all newlines are CRLF.  Return whether single words were marked, as
MAY-REFINE allows."
  (let* ((old (plist-get hunk :old_lines))
         (new (plist-get hunk :new_lines))
         (is-written (equal (plist-get hunk :state) "written"))
         (line (plist-get hunk :line))
         (whole (point))
         (item `(:kind hunk :key ,(isthmus-changes--hunk-key hunk) :id ,(plist-get hunk :id) :line ,line
                       :is-written ,is-written :undo ,(plist-get hunk :undo)))
         removed added)
    (insert (propertize (format "@@ -%d,%d +%d,%d @@"
                                (+ (plist-get hunk :old_start) (if old 1 0)) (length old)
                                (+ (plist-get hunk :new_start) (if new 1 0)) (length new))
                        'face 'diff-hunk-header)
            (propertize (isthmus-changes--about hunk file) 'face 'shadow) "\n")
    (cl-flet ((put (sign lines face first step)
                (let ((start (point)))
                  (seq-doseq (text lines)
                    (let ((begin (point))
                          (is-whole (string-suffix-p "\n" text)))
                      (insert sign (if (and is-dos is-whole (string-suffix-p "\r\n" text))
                                       (concat (substring text 0 -2) "\n")
                                     text)
                              (if is-whole "" "\n\\ No newline at end of file\n"))
                      (put-text-property begin (point) 'isthmus-line first)
                      (cl-incf first step)))
                  (add-face-text-property start (point) face)
                  (cons start (point)))))
      (put " " before 'diff-context (- line (length before)) 1)
      (setq removed (put "-" old (if is-written 'diff-removed 'shadow) line (if is-written 0 1)))
      (setq added (put "+" new (if is-written 'diff-added 'shadow) line (if is-written 1 0)))
      (put " " after 'diff-context (+ line (length (if is-written new old))) 1))
    (put-text-property whole (point) 'isthmus-change item)
    (when (and may-refine is-written old new (fboundp 'diff-refine-preproc)
               (< (- (cdr removed) (car removed)) 4000) (< (- (cdr added) (car added)) 4000))
      (condition-case nil
          (smerge-refine-regions (car removed) (cdr removed) (car added) (cdr added) nil #'diff-refine-preproc
                                 '((face . diff-refine-removed)) '((face . diff-refine-added)))
        (error nil))
      t)))

(defun isthmus-changes--hunk-key (hunk)
  "Return what stays of HUNK when it is undone or taken back: its lines.
Hunks with the same lines are told apart by a number."
  (let* ((lines (list (plist-get hunk :old_lines) (plist-get hunk :new_lines)))
         (number (1+ (gethash lines isthmus-changes--same 0))))
    (puthash lines number isthmus-changes--same)
    (list 'hunk number lines)))

(defun isthmus-changes--about (hunk file)
  "Return what the user should know of HUNK of FILE besides its lines."
  (let ((turns (plist-get hunk :turns))
        (later (plist-get hunk :later)))
    (mapconcat
     (lambda (text) (concat "  " text))
     (delq nil
           (append
            (mapcar (lambda (about)
                      (pcase about
                        ("mode" (format "permissions %o to %o" (or (plist-get file :old_mode) 0)
                                        (or (plist-get file :new_mode) 0)))
                        ("mark" "byte order mark")
                        ("encoding" "encoding")
                        ("content" "not text, or too large: shown without lines")))
                    (plist-get hunk :about))
            (list (unless isthmus-changes--turn
                    (format "turn%s %s" (if (cdr turns) "s" "") (mapconcat #'number-to-string turns ", ")))
                  (cond
                   ((not (equal (plist-get hunk :state) "written")) "undone; u takes that back")
                   (later (format "turn%s %s built upon it: undone with it"
                                  (if (cdr later) "s" "") (mapconcat #'number-to-string later ", ")))
                   ((plist-get hunk :whole) "undone with all that is later in the file")))))
     "")))

;;;; Moving

(defun isthmus-changes--move (backward &optional kind)
  "Go to the next item, or to the one before with BACKWARD.
KIND: only to one of this kind."
  (let ((key (plist-get (isthmus-changes--item) :key))
        (start (point))
        (step (if backward -1 1))
        found)
    (while (and (not found) (zerop (forward-line step)) (not (and (eobp) (bolp) (not backward))))
      (let ((item (isthmus-changes--item)))
        (when (and item (not (equal (plist-get item :key) key)) (or (null kind) (eq (plist-get item :kind) kind)))
          (setq found (isthmus-changes--place (plist-get item :key)))))
      (when (and backward (bobp) (not found))
        (setq step 1)
        (goto-char (point-max))
        (setq found start)))
    (goto-char (or found start))
    (when (or (null found) (= found start))
      (user-error "Isthmus: no more changes"))))

(defun isthmus-changes-next ()
  "Go to the next file, turn or hunk."
  (interactive nil isthmus-changes-mode)
  (isthmus-changes--move nil))

(defun isthmus-changes-previous ()
  "Go to the file, turn or hunk before."
  (interactive nil isthmus-changes-mode)
  (isthmus-changes--move t))

(defun isthmus-changes-next-turn ()
  "Go to the next turn in the list, an earlier one."
  (interactive nil isthmus-changes-mode)
  (isthmus-changes--move nil 'turn))

(defun isthmus-changes-previous-turn ()
  "Go to the turn before in the list, a later one."
  (interactive nil isthmus-changes-mode)
  (isthmus-changes--move t 'turn))

(defun isthmus-changes-show ()
  "Show the hunks of the file at point; among these, the place in the file."
  (interactive nil isthmus-changes-mode)
  (let ((item (isthmus-changes--item)))
    (if (or isthmus-changes--path (not (eq (plist-get item :kind) 'file)))
        (isthmus-changes-visit)
      (isthmus-changes--require-companion)
      (isthmus-changes--show-file (plist-get item :path) (plist-get item :turn)))))

(defun isthmus-changes-click (event)
  "Show the file that EVENT, a click, is on."
  (interactive "e" isthmus-changes-mode)
  (mouse-set-point event)
  (isthmus-changes-show))

(defun isthmus-changes-visit ()
  "Show the file at point in another window, at the line of the hunk."
  (interactive nil isthmus-changes-mode)
  (let ((path (or isthmus-changes--path (plist-get (isthmus-changes--item) :path)
                  (user-error "Isthmus: go to the line of a file")))
        (line (or (get-text-property (point) 'isthmus-line) (plist-get (isthmus-changes--item) :line))))
    (unless (file-exists-p path)
      (user-error "Isthmus: %s is not there now" (isthmus-changes--name path)))
    (find-file-other-window path)
    (when line
      (widen)
      (goto-char (point-min))
      (forward-line line))))

(defun isthmus-changes-ediff ()
  "Compare the file before and after what agents wrote, in Ediff."
  (interactive nil isthmus-changes-diff-mode)
  (unless (plist-get isthmus-changes--answer :text)
    (user-error "Isthmus: there is no text to compare"))
  (let* ((path isthmus-changes--path)
         (target (isthmus--buffer-of path))
         (buffers (mapcar (pcase-lambda (`(,side . ,words))
                            (let ((buffer (generate-new-buffer
                                           (format "*%s: %s*" words
                                                   (isthmus-changes--printed (file-name-nondirectory path))))))
                              (isthmus--fill buffer (car (isthmus--split-text
                                                          (or (plist-get isthmus-changes--answer side) "")))
                                             path target)
                              (with-current-buffer buffer
                                (setq buffer-read-only t))
                              buffer))
                          '((:old . "before") (:new . "after")))))
    (ediff-buffers (car buffers) (cadr buffers)
                   (list (lambda ()
                           (add-hook 'ediff-quit-hook
                                     (lambda () (run-at-time 0 nil #'mapc #'kill-buffer buffers))
                                     90 t))))))

;;;; Deciding

(defun isthmus-changes--chosen ()
  "Return the items that a decision is about: at point, or in the region.
Signals `user-error' when there is none, or when agents changed it just now."
  (let* ((region (and (use-region-p) isthmus-changes--path
                      (seq-filter (lambda (item) (eq (plist-get item :kind) 'hunk))
                                  (isthmus-changes--items (save-excursion (goto-char (region-beginning))
                                                                          (line-beginning-position))
                                                          (region-end)))))
         (items (or region (delq nil (list (isthmus-changes--item))))))
    (cond
     ((not (derived-mode-p 'isthmus-changes-mode))
      (user-error "Isthmus: see first what agents wrote: %s, or %s" (isthmus--key-of #'isthmus-changes)
                  (isthmus--key-of #'isthmus-changes-file)))
     ((null items) (user-error "Isthmus: go to a hunk, a file or a turn"))
     ((eq (plist-get (car items) :kind) 'gone) (user-error "Isthmus: this is decided; n goes to the next one"))
     ((and isthmus-changes--changed-at
           (< (- (float-time) isthmus-changes--changed-at) (min isthmus--next-reading isthmus-review-reading)))
      (user-error "Isthmus: agents changed this just now; look again")))
    items))

(defun isthmus-changes--params (items)
  "Return the params that select ITEMS, as they are on the screen."
  (let ((item (car items)))
    (pcase (plist-get item :kind)
      ('hunk `((path . ,isthmus-changes--path)
               ,@(when isthmus-changes--turn `((turn . ,isthmus-changes--turn)))
               (hunks . ,(vconcat (mapcar (lambda (item) (plist-get item :id)) items)))))
      ((or 'file 'turn) `(,@(when (plist-get item :path) `((path . ,(plist-get item :path))))
                          ,@(when (plist-get item :turn) `((turn . ,(plist-get item :turn))))
                          (state . ,(plist-get isthmus-changes--answer :state))))
      (_ (user-error "Isthmus: go to a hunk, a file or a turn")))))

(defun isthmus-changes--is-deciding ()
  "Return non-nil while the companion carries out a decision."
  (and isthmus-changes--deciding (eq isthmus-changes--deciding isthmus--process)))

(defun isthmus-changes--begin ()
  "Note that a decision begins; signal `user-error' during another one."
  (isthmus-changes--require-companion)
  (when (isthmus-changes--is-deciding)
    (user-error "Isthmus: the decision before is being carried out"))
  (setq isthmus-changes--deciding isthmus--process)
  (deactivate-mark))

(defun isthmus-changes--decide (command params done)
  "Send COMMAND with PARAMS, and show the outcome; DONE is a word for it.
Call this only after the user has decided."
  (let ((view (current-buffer)))
    (isthmus--ask-changes
     command params
     (lambda (answer problem)
       (setq isthmus-changes--deciding nil)
       (let* ((files (mapcar #'isthmus-changes--name
                             (or (plist-get answer :kept) (plist-get answer :undone) (plist-get answer :restored))))
              (said (format "%s %s" done (cond ((cddr files) (format "%d files" (length files)))
                                               (files (string-join files ", "))
                                               (t "nothing")))))
         (dolist (buffer (isthmus-changes--views))
           (when (get-buffer-window buffer t)
             (isthmus-changes--refresh buffer (and (eq buffer view) (not problem) said))))
         (isthmus--say "%s" (cond
                             (problem)
                             ((plist-get answer :changed)
                              "something was written or decided since you saw this; nothing was done.  Look again")
                             (t (string-join (cons said (plist-get answer :problems)) "\n")))))))))

(defun isthmus-changes-keep ()
  "Keep the hunk, file or turn at point, or the hunks in the region.
It is not listed any more."
  (interactive)
  (isthmus--require-user)
  (let ((params (isthmus-changes--params (isthmus-changes--chosen))))
    (isthmus-changes--begin)
    (isthmus-changes--decide "written_keep" params "kept")))

(defun isthmus-changes-keep-turn ()
  "Keep the turn at point, or the turn of the file at point."
  (interactive nil isthmus-changes-mode)
  (isthmus--require-user)
  (let ((turn (and (null isthmus-changes--path) (plist-get (car (isthmus-changes--chosen)) :turn))))
    (unless turn
      (user-error "Isthmus: go to a turn in the list"))
    (isthmus-changes--begin)
    (isthmus-changes--decide "written_keep" `((turn . ,turn) (state . ,(plist-get isthmus-changes--answer :state)))
                             "kept")))

(defun isthmus-changes-undo ()
  "Undo the hunk, file or turn at point, or the hunks in the region.
\\<isthmus-changes-mode-map>\\[isthmus-changes-redo] takes it back."
  (interactive)
  (isthmus--require-user)
  (let* ((items (isthmus-changes--chosen))
         (items (if (eq (plist-get (car items) :kind) 'hunk)
                    (seq-filter (lambda (item) (plist-get item :is-written)) items)
                  (seq-filter (lambda (item)
                                (seq-some (lambda (file) (> (plist-get file :written) 0)) (plist-get item :files)))
                              items))))
    (unless items
      (user-error "Isthmus: nothing is left to undo here; u takes the undo back"))
    (let ((params (isthmus-changes--params items)))
      (isthmus-changes--begin)
      (isthmus-changes--decide "written_undo" params "undone:"))))

(defun isthmus-changes-redo ()
  "Take back the undo of the hunk, file or turn at point.
Elsewhere take back the newest undo."
  (interactive)
  (isthmus--require-user)
  (let* ((item (and (derived-mode-p 'isthmus-changes-mode) (isthmus-changes--item) (car (isthmus-changes--chosen))))
         (files (seq-filter (lambda (file) (> (plist-get file :undone) 0)) (plist-get item :files)))
         (take-back (lambda (undo)
                      (isthmus-changes--decide "written_take_back" (when undo `((undo . ,undo))) "taken back:"))))
    (when (and item (not (plist-get item :undo)) (not files))
      (user-error "Isthmus: nothing is undone here"))
    (isthmus-changes--begin)
    (if files
        (isthmus-changes--find-undo (plist-get item :turn) files nil take-back)
      (funcall take-back (plist-get item :undo)))))

(defun isthmus-changes--find-undo (turn files found callback)
  "Call CALLBACK with the newest undo of TURN in FILES; FOUND is one so far."
  (let ((view (current-buffer)))
    (isthmus--ask-changes
     "written_file" `((path . ,(plist-get (car files) :path)) ,@(when turn `((turn . ,turn))))
     (lambda (answer problem)
       (let ((undos (delq nil (cons found (mapcar (lambda (hunk) (plist-get hunk :undo)) (plist-get answer :hunks))))))
         (with-current-buffer (if (buffer-live-p view) view (current-buffer))
           (cond
            ((and (cdr files) (not problem))
             (isthmus-changes--find-undo turn (cdr files) (and undos (apply #'max undos)) callback))
            (undos (funcall callback (apply #'max undos)))
            (t (setq isthmus-changes--deciding nil)
               (isthmus--say "%s" (or problem "nothing is undone there any more"))))))))))

(with-eval-after-load 'evil
  (dolist (mode '(isthmus-changes-mode isthmus-changes-diff-mode))
    (evil-set-initial-state mode 'motion))
  (dolist (command '(isthmus-changes-keep isthmus-changes-keep-turn isthmus-changes-undo isthmus-changes-redo))
    (evil-add-command-properties command :repeat nil))
  (pcase-dolist (`(,key . ,command)
                 '(("RET" . isthmus-changes-show) ("o" . isthmus-changes-visit)
                   ("a" . isthmus-changes-keep) ("x" . isthmus-changes-undo) ("u" . isthmus-changes-redo)
                   ("A" . isthmus-changes-keep-turn)
                   ("C-j" . isthmus-changes-next) ("C-k" . isthmus-changes-previous)
                   ("J" . isthmus-changes-next-turn) ("K" . isthmus-changes-previous-turn)
                   ("g r" . revert-buffer) ("q" . quit-window)))
    (evil-define-key* '(normal motion) isthmus-changes-mode-map (kbd key) command)))

(provide 'isthmus-changes)
;;; isthmus-changes.el ends here
