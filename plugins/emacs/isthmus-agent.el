;;; isthmus-agent.el --- Run agent CLIs in terminals of this Emacs  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience, processes

;;; Commentary:

;; Starts an agent CLI in a terminal inside Emacs, so that it finds this Emacs, shows and hides its window, and types
;; into it: prompts, the region, names of files.  isthmus.el loads this file with the first of these commands.
;;
;; An agent that was started elsewhere sees Emacs just as well: what it sees and how it is reviewed is in isthmus.el.
;;
;; The text that is typed into a terminal may come from any file.  So control characters are left out, and it is pasted
;; as one piece: nothing in it can be a key for the agent.

;;; Code:

(require 'isthmus)
(require 'shell)

(declare-function term-mode "term")
(declare-function term-exec "term")
(declare-function term-char-mode "term")
(declare-function vterm-mode "ext:vterm")
(declare-function vterm-send-string "ext:vterm")
(declare-function vterm-send-return "ext:vterm")
(declare-function eat-mode "ext:eat")
(declare-function eat-exec "ext:eat")
(declare-function eat-term-send-string "ext:eat")
(declare-function eat-term-send-string-as-yank "ext:eat")
(defvar vterm-shell)
(defvar vterm-kill-buffer-on-exit)
(defvar eat-terminal)

(defcustom isthmus-agent-commands '("claude" "gemini" "qwen" "isthmus")
  "Command lines of agent CLIs, such as \"claude --permission-mode default\".
`isthmus-agent-start' takes the first one whose program is installed."
  :group 'isthmus
  :type '(repeat string))

(defcustom isthmus-agent-terminal nil
  "The kind of terminal that agents run in.
Nil means vterm or eat when one is installed, otherwise `term-mode'."
  :group 'isthmus
  :type '(choice (const :tag "The best that is installed" nil) (const term) (const vterm) (const eat)))

(defcustom isthmus-agent-side 'right
  "The side of the frame at which the agent's window is.
Nil means any window that `display-buffer' chooses."
  :group 'isthmus
  :type '(choice (const right) (const left) (const bottom) (const top) (const :tag "Any window" nil)))

(defcustom isthmus-agent-size 0.4
  "Width or height of the agent's window at a side of the frame.
A fraction of the frame, or a number of columns or lines."
  :group 'isthmus
  :type 'number)

(defconst isthmus-agent--longest-text 200000 "Characters beyond which text is not typed into a terminal.")
(defconst isthmus-agent--ready-within 20 "Seconds in which the companion has to be ready for an agent that is started.")
(defconst isthmus-agent--submit-after 0.2
  "Seconds between a pasted prompt and the Return key that submits it.
An agent takes a Return that follows at once as a part of what was pasted.")
(defconst isthmus-agent--end-within 3 "Seconds in which an agent has to end when its terminal hangs up.")

(defvar isthmus-agent--prompts nil "History of the prompts that were typed in the minibuffer.")
(defvar isthmus-agent--commands nil "History of the command lines of agents.")
(defvar-local isthmus-agent--program nil "The name of the agent CLI that runs, or ran, in this buffer.")
(defvar-local isthmus-agent--folder nil "The folder in which the agent of this buffer was started.")
(defvar-local isthmus-agent--stopping nil "Whether the user stopped the agent of this buffer.")

;;;; Which agent

(defun isthmus-agent--runs-in (buffer)
  "Return non-nil if BUFFER is the terminal of a live agent."
  (and (buffer-local-value 'isthmus-agent--program buffer)
       (process-live-p (get-buffer-process buffer))))

(defun isthmus-agent--folder-here ()
  "Return the folder in which an agent for the current buffer works."
  (when (file-remote-p default-directory)
    (user-error "Isthmus: %s is on another machine; agents run on this one" default-directory))
  (file-name-as-directory
   (or isthmus-agent--folder
       (isthmus--root-of (current-buffer))
       (seq-find (lambda (folder) (file-in-directory-p default-directory folder)) (isthmus--workspace-folders))
       (expand-file-name default-directory))))

(defun isthmus-agent--find (&optional folder)
  "Return the buffer of the agent that commands are meant for, or nil.
That is the one in this buffer, else of those in FOLDER the one that was
used last; without FOLDER the one that was used last anywhere."
  (if (isthmus-agent--runs-in (current-buffer))
      (current-buffer)
    (let ((running (seq-filter #'isthmus-agent--runs-in (buffer-list))))
      (if folder
          (seq-find (lambda (buffer) (equal folder (buffer-local-value 'isthmus-agent--folder buffer))) running)
        (or (isthmus-agent--find (isthmus-agent--folder-here)) (car running))))))

(defun isthmus-agent--get ()
  "Return the buffer of the agent that commands are meant for.
Signals `user-error' when there is none."
  (or (isthmus-agent--find)
      (user-error "Isthmus: no agent runs in this Emacs; M-x isthmus-agent-start")))

;;;; Its window

(defun isthmus-agent--show (buffer)
  "Show the agent's BUFFER and select its window."
  (select-window
   (or (get-buffer-window buffer)
       (display-buffer
        buffer
        (if isthmus-agent-side
            `((display-buffer-in-side-window)
              (side . ,isthmus-agent-side)
              (slot . -1) ; questions of agents have the slot 0
              (,(if (memq isthmus-agent-side '(left right)) 'window-width 'window-height) . ,isthmus-agent-size)
              (window-parameters . ((no-delete-other-windows . t))))
          '((display-buffer-use-some-window display-buffer-pop-up-window) (inhibit-same-window . t)))))))

(defun isthmus-agent--hide (buffer)
  "Hide the windows of the agent's BUFFER."
  (dolist (window (get-buffer-window-list buffer nil t))
    (quit-restore-window window 'bury)))

;;;###autoload
(defun isthmus-agent-toggle ()
  "Show the agent's terminal, or hide it; start an agent when there is none."
  (interactive)
  (let ((buffer (isthmus-agent--find)))
    (cond ((null buffer) (isthmus-agent-start))
          ((get-buffer-window buffer) (isthmus-agent--hide buffer))
          (t (isthmus-agent--show buffer)))))

;;;###autoload
(defun isthmus-agent-focus ()
  "Go to the agent's terminal; in the terminal, back to where you were."
  (interactive)
  (if (isthmus-agent--runs-in (current-buffer))
      (select-window (or (get-mru-window nil t t) (user-error "Isthmus: there is no other window")))
    (isthmus-agent--show (isthmus-agent--get))))

;;;; Its life

;;;###autoload
(defun isthmus-agent-start (&optional command)
  "Start an agent CLI for this project in a terminal, or go to the live one.
With a prefix argument ask for the COMMAND, and start it in any case."
  (interactive
   (list (and current-prefix-arg
              (read-shell-command "Agent: " (car isthmus-agent-commands) 'isthmus-agent--commands
                                  isthmus-agent-commands))))
  (let* ((folder (isthmus-agent--folder-here))
         (running (and (null command) (isthmus-agent--find folder))))
    (if running
        (isthmus-agent--show running)
      (let ((words (isthmus-agent--words command))
            (environment process-environment))
        (unless isthmus-mode
          (isthmus-mode 1))
        (isthmus-agent--when-ready (+ (float-time) isthmus-agent--ready-within)
                                   (lambda () (isthmus-agent--run words folder environment)))))))

(defun isthmus-agent--words (command)
  "Split COMMAND, or that of an installed agent, into program and arguments."
  (let ((known (if command (list command) isthmus-agent-commands)))
    (or (seq-find (lambda (words) (and words (executable-find (car words))))
                  (mapcar #'split-string-shell-command known))
        (user-error "Isthmus: no such program: %s; see `isthmus-agent-commands'" (string-join known ", ")))))

(defun isthmus-agent--when-ready (deadline action)
  "Call ACTION as soon as agents can find this Emacs; give up at DEADLINE."
  (cond (isthmus--ready (isthmus--when-free action))
        ((< (float-time) deadline) (run-at-time 0.1 nil #'isthmus-agent--when-ready deadline action))
        (t (isthmus--say "no agent was started: the companion is not ready; M-x isthmus-show-log"))))

(defun isthmus-agent--environment (environment)
  "Return ENVIRONMENT with the variables by which agents find this Emacs.
ENVIRONMENT may be that of a project, as direnv sets it."
  (let ((ours (mapcar (lambda (variable) (cons (car variable) (with-temp-buffer (getenv (car variable)))))
                      isthmus--variables))
        (process-environment (copy-sequence environment)))
    (pcase-dolist (`(,name . ,value) ours)
      (setenv name value))
    process-environment))

(defun isthmus-agent--name (words)
  "Return the name of the agent CLI that the program and arguments WORDS start.
`isthmus companion exec' starts the one behind two hyphens."
  (let ((started (and (equal (file-name-base (car words)) "isthmus") (cadr (member "--" words)))))
    (file-name-base (or started (car words)))))

(defun isthmus-agent--run (words folder environment)
  "Run the program and arguments WORDS in a terminal in FOLDER, with ENVIRONMENT."
  (let* ((program (isthmus-agent--name words))
         (project (isthmus--visible (file-name-nondirectory (directory-file-name folder))))
         (buffer (generate-new-buffer (format "*%s: %s*" program project))))
    (with-current-buffer buffer
      (setq default-directory folder))
    (isthmus-agent--show buffer) ; first, so that the terminal has the size of its window
    (condition-case problem
        (with-current-buffer buffer ; where no environment of a project is bound
          (let ((process-environment (isthmus-agent--environment environment)))
            (isthmus-agent--open-terminal words)))
      (error
       (isthmus-agent--hide buffer)
       (kill-buffer buffer)
       (signal (car problem) (cdr problem))))
    (with-current-buffer buffer
      (setq isthmus-agent--program program
            isthmus-agent--folder folder))
    (when-let ((process (get-buffer-process buffer)))
      (add-function :around (process-sentinel process)
                    (lambda (sentinel process event)
                      (let ((vterm-kill-buffer-on-exit nil)) ; what an agent that fails says is to be read
                        (funcall sentinel process event))
                      (isthmus-agent--ended process buffer))))))

(defun isthmus-agent--open-terminal (words)
  "Make this buffer a terminal for the program and arguments WORDS."
  (pcase (or isthmus-agent-terminal
             (seq-find (lambda (kind) (locate-library (symbol-name kind))) '(vterm eat))
             'term)
    ('vterm
     (require 'vterm)
     (let ((vterm-shell (mapconcat #'shell-quote-argument words " ")))
       (vterm-mode)))
    ('eat
     (require 'eat)
     (eat-mode)
     (eat-exec (current-buffer) (buffer-name) (car words) nil (cdr words)))
    (_
     (require 'term)
     (term-mode)
     (term-exec (current-buffer) (buffer-name) (car words) nil (cdr words))
     (term-char-mode)
     (isthmus-agent-term-mode 1))))

(defvar isthmus-agent-term-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-x") 'Control-X-prefix)
    (define-key map (kbd "M-x") #'execute-extended-command)
    map)
  "Keys that Emacs keeps for itself in an agent's `term-mode'.")

(define-minor-mode isthmus-agent-term-mode
  "Keep the usual prefix keys of Emacs in the `term-mode' of an agent."
  :lighter nil)

(defun isthmus-agent--ended (process buffer)
  "Close BUFFER, whose PROCESS has ended, unless it has an error to show."
  (when (and (not (process-live-p process)) (buffer-live-p buffer))
    (let ((code (process-exit-status process))
          (program (buffer-local-value 'isthmus-agent--program buffer)))
      (if (or (eq code 0) (buffer-local-value 'isthmus-agent--stopping buffer))
          (run-at-time 0 nil #'isthmus-agent--close buffer)
        (isthmus--say "%s ended with code %d; its terminal is in the buffer %s" program code (buffer-name buffer))))))

(defun isthmus-agent--close (buffer)
  "Remove BUFFER, whose agent has ended, and its windows."
  (when (buffer-live-p buffer)
    (isthmus-agent--hide buffer)
    (kill-buffer buffer)))

;;;###autoload
(defun isthmus-agent-stop ()
  "End the agent, as if its terminal was closed."
  (interactive)
  (let* ((buffer (isthmus-agent--get))
         (process (get-buffer-process buffer)))
    (when (y-or-n-p (format "End %s? " (buffer-name buffer)))
      (when (buffer-live-p buffer)
        (with-current-buffer buffer
          (setq isthmus-agent--stopping t)))
      (when (process-live-p process)
        (signal-process process 'SIGHUP)
        (run-at-time isthmus-agent--end-within nil
                     (lambda () (when (process-live-p process) (delete-process process))))))))

;;;; Typing into it

(defun isthmus-agent--paste (buffer text)
  "Paste TEXT into the terminal in BUFFER, without control characters."
  (when (> (length text) isthmus-agent--longest-text)
    (user-error "Isthmus: %d characters are too many for a terminal; M-x isthmus-insert-mention names the file instead"
                (length text)))
  (let ((clean (replace-regexp-in-string
                "[\x00-\x08\x0B-\x1F\x7F-\u009F]" ""
                (string-replace "\r\n" "\n" (isthmus--unicode (substring-no-properties text))))))
    (with-current-buffer buffer
      (cond
       ((derived-mode-p 'vterm-mode) (vterm-send-string clean t))
       ((derived-mode-p 'eat-mode) (eat-term-send-string-as-yank eat-terminal clean))
       (t ; term-mode does not know whether the program wants to be told what is pasted; all agents do
        (process-send-string (get-buffer-process buffer)
                             (encode-coding-string (format "\e[200~%s\e[201~" (string-replace "\n" "\r" clean))
                                                   'utf-8-unix)))))))

(defun isthmus-agent--submit (buffer)
  "Press Return in the terminal in BUFFER."
  (when (and (buffer-live-p buffer) (isthmus-agent--runs-in buffer))
    (with-current-buffer buffer
      (cond
       ((derived-mode-p 'vterm-mode) (vterm-send-return))
       ((derived-mode-p 'eat-mode) (eat-term-send-string eat-terminal "\r"))
       (t (process-send-string (get-buffer-process buffer) "\r"))))))

(defun isthmus-agent--read-prompt (buffer)
  "Ask the user for a prompt for the agent in BUFFER."
  (let ((prompt (read-string (format "Prompt for %s: " (buffer-local-value 'isthmus-agent--program buffer))
                             nil 'isthmus-agent--prompts)))
    (if (string-blank-p prompt)
        (user-error "Isthmus: the prompt is empty")
      prompt)))

;;;###autoload
(defun isthmus-send-prompt (prompt)
  "Send PROMPT to the agent in this Emacs."
  (interactive (list (isthmus-agent--read-prompt (isthmus-agent--get))))
  (let ((buffer (isthmus-agent--get)))
    (isthmus-agent--paste buffer prompt)
    (run-at-time isthmus-agent--submit-after nil #'isthmus-agent--submit buffer)
    (isthmus--say "sent to %s" (buffer-name buffer))))

;;;###autoload
(defun isthmus-send-region (start end &optional prompt)
  "Type the text from START to END into the agent, and go there to ask about it.
With a prefix argument ask for a PROMPT here, and send both."
  (interactive
   (progn
     (unless (use-region-p)
       (user-error "Isthmus: select what to send"))
     (list (region-beginning) (region-end)
           (and current-prefix-arg (isthmus-agent--read-prompt (isthmus-agent--get))))))
  (let* ((buffer (isthmus-agent--get))
         (text (buffer-substring-no-properties start end))
         (fence (make-string (max 3 (1+ (isthmus-agent--longest-run ?` text))) ?`))
         (place (isthmus-agent--describe-place start end buffer)))
    (isthmus-agent--paste buffer (concat (and prompt (concat prompt "\n\n")) place ":\n"
                                         fence "\n" (string-trim-right text "\n+") "\n" fence "\n"))
    (deactivate-mark)
    (if (null prompt)
        (isthmus-agent--show buffer)
      (run-at-time isthmus-agent--submit-after nil #'isthmus-agent--submit buffer)
      (isthmus--say "sent to %s" (buffer-name buffer)))))

(defun isthmus-agent--longest-run (character text)
  "Return the length of the longest run of CHARACTER in TEXT."
  (apply #'max 0 (mapcar #'length (split-string text (format "[^%c]+" character) t))))

(defun isthmus-agent--path-for (buffer)
  "Return the path of the current buffer's file as the agent in BUFFER knows it.
Nil when it is no local file."
  (when-let ((path (isthmus--file-of (or (buffer-base-buffer) (current-buffer)))))
    (let ((folder (buffer-local-value 'isthmus-agent--folder buffer)))
      (if (file-in-directory-p path folder)
          (file-relative-name path folder)
        path))))

(defun isthmus-agent--lines (start end)
  "Return the first and the last line of the text from START to END, 1-based."
  (let ((first (line-number-at-pos start t)))
    (list first (max first (line-number-at-pos (if (> end start) (1- end) end) t)))))

(defun isthmus-agent--describe-place (start end buffer)
  "Say for the agent in BUFFER where the text from START to END is."
  (if-let ((path (isthmus-agent--path-for buffer)))
      (pcase-let ((`(,first ,last) (isthmus-agent--lines start end)))
        (if (= first last)
            (format "%s, line %d" path first)
          (format "%s, lines %d to %d" path first last)))
    (format "From the buffer %s" (buffer-name))))

(defun isthmus-agent--mention (path lines program)
  "Return a mention of PATH, and of its LINES if not nil, in the form for PROGRAM."
  (let* ((is-claude (equal program "claude"))
         (has-space (string-match-p "[ \t]" path)))
    (pcase-let ((`(,first ,last) lines))
      (concat "@"
              (cond ((not has-space) path)
                    (is-claude (format "\"%s\"" path))
                    (t (replace-regexp-in-string "[ \t]" "\\\\\\&" path)))
              (cond ((null lines) "")
                    ((and is-claude (not has-space)) (format "#L%d-%d" first last))
                    (t (format " (lines %d to %d)" first last)))
              " "))))

;;;###autoload
(defun isthmus-insert-mention ()
  "Type a mention of this file, or of the lines of the region, into the agent.
Without an agent in this Emacs, the companion mentions it (`isthmus-mention')."
  (interactive)
  (if-let ((buffer (isthmus-agent--find)))
      (let ((path (or (isthmus-agent--path-for buffer)
                      (user-error "Isthmus: this buffer is no file on disk")))
            (lines (and (use-region-p) (isthmus-agent--lines (region-beginning) (region-end)))))
        (isthmus-agent--paste buffer (isthmus-agent--mention
                                      path lines (buffer-local-value 'isthmus-agent--program buffer)))
        (deactivate-mark)
        (isthmus-agent--show buffer))
    (isthmus-mention)))

(provide 'isthmus-agent)
;;; isthmus-agent.el ends here
